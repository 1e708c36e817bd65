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
#include <utility>

namespace offpath::executor {

using base::Fd;
using base::Result;
using base::Status;

// The loader tells libraries apart by path, so the descriptor stays open: its number must not come again.
Result<void*> open_image(std::span<const uint8_t> image, const std::string& name) {
  open_device_libraries();
  Fd file(memfd_create(name.c_str(), 0));
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
  std::vector<uint64_t> addresses;
  for (const std::string& name : names) {
    // The compiler's entry record begins with the address; static variables have no symbol of their own.
    if (const void* record = dlsym(handle.value(), (".omp_offloading.entry." + name).c_str()); record != nullptr) {
      addresses.push_back(*static_cast<const uint64_t*>(record));
    } else if (const void* symbol = dlsym(handle.value(), name.c_str()); symbol != nullptr) {
      addresses.push_back(reinterpret_cast<uint64_t>(symbol));
    } else {
      return Status::error(OFFPATH_ERR_ARGUMENT,
                           "the image has no entry '%.150s' (host and device part do not fit). Rebuild", name.c_str());
    }
  }
  link_map* map = nullptr;
  dlinfo(handle.value(), RTLD_DI_LINKMAP, &map);
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
