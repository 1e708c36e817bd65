// SPDX-License-Identifier: BSD-3-Clause
#include "device/device_code.hpp"

#include "base/fd.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace offpath::device {

namespace {

using Bytes = std::span<const uint8_t>;

constexpr std::array<uint8_t, 7> kBegin{ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT};

// How many bytes the shared object has that begins there; 0: there is none for that machine.
size_t length_of_object(Bytes from, uint32_t machine) {
  Elf64_Ehdr head;
  if (from.size() < sizeof(head)) return 0;
  memcpy(&head, from.data(), sizeof(head));
  if (head.e_type != ET_DYN || head.e_machine != machine || head.e_phentsize != sizeof(Elf64_Phdr)) return 0;
  const uint64_t parts_bytes = uint64_t{head.e_phnum} * sizeof(Elf64_Phdr);
  if (head.e_phoff > from.size() || parts_bytes > from.size() - head.e_phoff) return 0;
  uint64_t end = head.e_phoff + parts_bytes;
  bool is_linked = false;
  for (uint32_t i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr part;
    memcpy(&part, from.data() + head.e_phoff + i * sizeof(part), sizeof(part));
    if (part.p_offset > from.size() || part.p_filesz > from.size() - part.p_offset) return 0;
    end = std::max(end, part.p_offset + part.p_filesz);
    is_linked |= part.p_type == PT_DYNAMIC;
  }
  if (!is_linked) return 0;
  // Debuggers alone read the sections.
  const uint64_t sections_bytes = uint64_t{head.e_shnum} * head.e_shentsize;
  if (head.e_shoff <= from.size() && sections_bytes <= from.size() - head.e_shoff)
    end = std::max(end, head.e_shoff + sections_bytes);
  return end;
}

}  // namespace

std::vector<Bytes> device_code_in(Bytes file, uint32_t machine) {
  std::vector<Bytes> found;
  size_t at = std::min<size_t>(1, file.size());
  while (true) {
    const auto begin =
        std::search(file.begin() + static_cast<std::ptrdiff_t>(at), file.end(), kBegin.begin(), kBegin.end());
    if (begin == file.end()) return found;
    const Bytes rest = file.subspan(static_cast<size_t>(begin - file.begin()));
    const size_t length = length_of_object(rest, machine);
    if (length > 0) found.push_back(rest.first(length));
    at = file.size() - rest.size() + std::max<size_t>(length, 1);
  }
}

std::optional<FileBytes> FileBytes::of(const std::string& path) {
  const base::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat about {};
  if (!file.valid() || fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
  const auto length = static_cast<size_t>(about.st_size);
  if (length == 0) return FileBytes(Bytes());
  void* data = mmap(nullptr, length, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) return std::nullopt;
  return FileBytes(Bytes(static_cast<const uint8_t*>(data), length));
}

FileBytes::~FileBytes() {
  if (!bytes_.empty()) munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace offpath::device
