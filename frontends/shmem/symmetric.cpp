// SPDX-License-Identifier: BSD-3-Clause
#include "shmem/symmetric.hpp"

#include <link.h>

#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

namespace offpath::shmem {
namespace {

// One line of /proc/self/maps.
struct Mapping {
  uintptr_t begin = 0, end = 0;
  uint64_t offset = 0, inode = 0;
  unsigned major = 0, minor = 0;
  bool writable = false;

  // Two lines of what was mapped at once; the system splits a mapping when parts of it are advised on.
  bool continues(const Mapping& before) const {
    return begin == before.end && inode == before.inode && major == before.major && minor == before.minor &&
           writable == before.writable && (inode == 0 || offset == before.offset + (before.end - before.begin));
  }
};

bool parse(const char* line, Mapping* mapping) {
  char write = '-';
  const int fields = sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*c%c%*c%*c %" SCNx64 " %x:%x %" SCNu64, &mapping->begin,
                            &mapping->end, &write, &mapping->offset, &mapping->major, &mapping->minor, &mapping->inode);
  mapping->writable = write == 'w';
  return fields == 7;
}

int find_data(dl_phdr_info* info, size_t, void* result) {
  uintptr_t begin = UINTPTR_MAX, end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_W) == 0) continue;
    const uintptr_t start = info->dlpi_addr + header.p_vaddr;
    begin = start < begin ? start : begin;
    end = start + header.p_memsz > end ? start + header.p_memsz : end;
  }
  if (begin < end) *static_cast<Range*>(result) = {reinterpret_cast<std::byte*>(begin), end - begin};
  return 1;  // the program itself comes first; libraries are not symmetric
}

}  // namespace

Range heap_range(const void* inside) {
  const auto address = reinterpret_cast<uintptr_t>(inside);
  const std::unique_ptr<FILE, int (*)(FILE*)> maps(fopen("/proc/self/maps", "re"), &fclose);
  if (maps == nullptr) return {};
  Mapping found, next;
  char line[512];
  bool line_begins = true;
  while (fgets(line, sizeof(line), maps.get()) != nullptr) {
    const bool whole_line = line_begins;
    line_begins = std::string_view(line).ends_with('\n');
    if (!whole_line || !parse(line, &next)) continue;
    if (next.continues(found)) {
      found.end = next.end;
    } else if (found.begin <= address && address < found.end) {
      break;
    } else {
      found = next;
    }
  }
  if (address < found.begin || address >= found.end || !found.writable) return {};
  return {reinterpret_cast<std::byte*>(found.begin), found.end - found.begin};
}

Range data_range() {
  Range range;
  dl_iterate_phdr(&find_data, &range);
  return range;
}

offpath_status_t Segment::open(offpath_team_t* team, uint64_t id, const Range& own, std::vector<std::byte*> mapped,
                               offpath_error_t* error) {
  own_ = own;
  mapped_ = std::move(mapped);
  offpath_window_params_t params{};
  params.struct_bytes = sizeof(params);
  params.id = id;
  params.base = own.begin;
  params.bytes = own.bytes;
  return offpath_window_create(team, &params, &window_, error);
}

void Segment::close() {
  offpath_window_destroy(window_);
  window_ = nullptr;
}

}  // namespace offpath::shmem
