// SPDX-License-Identifier: BSD-3-Clause
#include "executor/images.hpp"

#include "base/fd.hpp"
#include "device/command.hpp"
#include "executor/device_libraries.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

namespace offpath::executor {

using base::Fd;
using base::Result;
using base::Status;

// The loader tells libraries apart by path, so the descriptor stays open: its number must not come again.
Result<void*> open_image(std::span<const uint8_t> image, const std::string& name) {
  open_device_libraries();
  Fd file(memfd_create(name.c_str(), MFD_CLOEXEC));
  if (!file.valid()) return Status::system_error(OFFPATH_ERR_NO_MEMORY, errno, "cannot make a file for the image");
  for (size_t written = 0; written < image.size();) {
    const ssize_t part = write(file.get(), image.data() + written, image.size() - written);
    if (part <= 0)
      return Status::system_error(OFFPATH_ERR_NO_MEMORY, errno, "cannot keep an image of %zu bytes", image.size());
    written += static_cast<size_t>(part);
  }
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Status::error(OFFPATH_ERR_ARGUMENT, "the image cannot be loaded: %s", dlerror());
  file.release();
  return handle;
}

namespace {

int measure(dl_phdr_info* info, size_t, void* data) {
  auto& extent = *static_cast<Extent*>(data);
  if (info->dlpi_addr != extent.base) return 0;
  extent = extent_of(*info);
  return 1;
}

// Addresses of entries by name; those of one name in the image's order.
using Records = std::multimap<std::string, uint64_t>;

// What the compiler says of entries, in a section of the image that was loaded at `base`. They are in the host's order: two files may
// each have a static variable of one name. And none of them needs a symbol, which a version script may hide.
Records records_of(std::span<const uint8_t> image, uint64_t base) {
  struct Record {
    uint64_t address;
    const char* name;
    uint64_t bytes, flags;
  };
  const auto part_at = [&]<typename T>(uint64_t offset, T& part) {
    if (offset > image.size() || sizeof(part) > image.size() - offset) return false;
    memcpy(&part, image.data() + offset, sizeof(part));
    return true;
  };
  Records records;
  Elf64_Ehdr head;
  Elf64_Shdr names, section;
  if (!part_at(0, head) || !part_at(head.e_shoff + uint64_t{head.e_shstrndx} * sizeof(names), names)) return records;
  for (uint64_t i = 0; i < head.e_shnum; ++i) {
    char name[sizeof("omp_offloading_entries")];
    if (!part_at(head.e_shoff + i * sizeof(section), section) || !part_at(names.sh_offset + section.sh_name, name) ||
        memcmp(name, "omp_offloading_entries", sizeof(name)) != 0)
      continue;
    const auto* begin = reinterpret_cast<const Record*>(base + section.sh_addr);
    for (const Record& record : std::span(begin, section.sh_size / sizeof(Record)))
      records.emplace(record.name, record.address);
  }
  return records;
}

template <size_t... I>
void call_with(uint64_t entry, const uint64_t* arguments, std::index_sequence<I...>) {
  reinterpret_cast<void (*)(decltype((void)I, uint64_t{})...)>(entry)(arguments[I]...);
}

// More arguments than the function has do no harm in the calling conventions of our processors: the caller clears up.
template <size_t N>
void call_padded(uint64_t entry, std::span<const uint64_t> arguments) {
  std::array<uint64_t, N> padded{};
  std::copy(arguments.begin(), arguments.end(), padded.begin());
  call_with(entry, padded.data(), std::make_index_sequence<N>());
}

}  // namespace

Extent extent_of(const dl_phdr_info& object) {
  Extent extent{UINT64_MAX, 0, object.dlpi_addr};
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& part = object.dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    extent.begin = std::min<uint64_t>(extent.begin, object.dlpi_addr + part.p_vaddr);
    extent.end = std::max<uint64_t>(extent.end, object.dlpi_addr + part.p_vaddr + part.p_memsz);
  }
  return extent;
}

Result<std::vector<uint64_t>> Images::load(std::span<const uint8_t> image, const std::vector<std::string>& names) {
  const std::lock_guard lock(mutex_);
  if (count_ == kMaxImages) return Status::error(OFFPATH_ERR_NO_MEMORY, "more than %zu images", kMaxImages);
  const auto handle = open_image(image, "offpath-image");
  if (!handle.ok()) return handle.status();
  link_map* map = nullptr;
  dlinfo(handle.value(), RTLD_DI_LINKMAP, &map);
  Records records = records_of(image, map->l_addr);
  std::vector<uint64_t> addresses;
  for (const std::string& name : names) {
    if (const auto record = records.lower_bound(name); record != records.end() && record->first == name) {
      addresses.push_back(record->second);
      // The next of this name is the next record's.
      if (const auto next = std::next(record); next != records.end() && next->first == name) records.erase(record);
    } else if (const void* symbol = dlsym(handle.value(), name.c_str()); symbol != nullptr) {
      addresses.push_back(reinterpret_cast<uint64_t>(symbol));
    } else {
      return Status::error(OFFPATH_ERR_ARGUMENT,
                           "the image has no entry '%.150s' (host and device part do not fit). Rebuild", name.c_str());
    }
  }
  Extent& extent = extents_[count_] = {0, 0, map->l_addr};
  dl_iterate_phdr(measure, &extent);
  ++count_;
  return addresses;
}

bool Images::locate(uint64_t instruction, uint64_t& image, uint64_t& offset) const {
  for (size_t i = 0; i < count_; ++i) {
    if (!extents_[i].holds(instruction)) continue;
    image = i;
    offset = instruction - extents_[i].base;
    return true;
  }
  return false;
}

void call_entry(uint64_t entry, std::span<const uint64_t> arguments) {
  if (arguments.size() <= 8) return call_padded<8>(entry, arguments);
  if (arguments.size() <= 32) return call_padded<32>(entry, arguments);
  call_padded<device::kMaxArguments>(entry, arguments);
}

}  // namespace offpath::executor
