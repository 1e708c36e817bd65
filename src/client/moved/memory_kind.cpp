// SPDX-License-Identifier: BSD-3-Clause
#include "client/moved/memory_kind.hpp"

#include "watch/maps.h"

#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace offpath::client::moved {
namespace {

struct Look {
  Extent pages;
  uint64_t seen_to;  // without a gap, all good
  bool inside = false;
  bool good = true;
};

bool is_nameless(const offpath_map_t& map) {
  const std::string_view name = map.name;
  return name.empty() || name == "[heap]" || name.starts_with("[anon");
}

int look_at_mapping(const offpath_map_t* map, void* argument) {
  auto& look = *static_cast<Look*>(argument);
  if (map->begin >= look.pages.end || !look.good) return 1;
  look.inside = map->end > look.pages.begin;
  if (!look.inside) return 0;
  look.good = map->begin <= look.seen_to && map->inode == 0 && is_nameless(*map) &&
              std::string_view(map->permissions).starts_with("rw") && map->permissions[3] == 'p';
  look.seen_to = map->end;
  return 0;
}

// Large pages would be lost; what is locked, registered or advised is somebody's business.
int look_at_detail(const char* line, void* argument) {
  auto& look = *static_cast<Look*>(argument);
  if (!look.inside) return 0;
  const std::string_view text = line;
  constexpr std::string_view kFlags = "VmFlags:";
  if (text.starts_with("AnonHugePages:") || text.starts_with("Locked:")) {
    look.good &= text.find_first_of("123456789") == text.npos;
  } else if (text.starts_with(kFlags)) {
    for (const char* flag :
         {" gd", " io", " lo", " lf", " dc", " de", " ht", " hg", " mg", " um", " uw", " ui", " wf", " pf"}) {
      look.good &= text.find(flag, kFlags.size()) == text.npos;
    }
  }
  return look.good ? 0 : 1;
}

int overlaps_object(dl_phdr_info* info, size_t, void* argument) {
  const auto& pages = *static_cast<const Extent*>(argument);
  for (const ElfW(Phdr) & part : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
    const uint64_t begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && pages.overlaps({begin, begin + part.p_memsz})) return 1;
  }
  return 0;
}

struct Search {
  uint64_t device, inode;
  Extent own;
  std::vector<Mapped>* out;
};

int keep_mapped(const offpath_map_t* map, void* argument) {
  const auto& search = *static_cast<Search*>(argument);
  const Extent pages{map->begin, map->end};
  const bool ours = map->inode == search.inode && map->device == search.device && map->permissions[3] == 's';
  if (ours && !pages.overlaps(search.own)) search.out->push_back({pages, map->offset});
  return 0;
}

}  // namespace

bool is_plain(const Extent& pages) {
  Extent wanted = pages;
  if (dl_iterate_phdr(overlaps_object, &wanted) != 0) return false;
  Look look{pages, pages.begin};
  const offpath_maps_visitor_t visitor{look_at_mapping, look_at_detail, &look};
  return offpath_maps_visit("/proc/self/smaps", &visitor) == 0 && look.good && look.seen_to >= pages.end;
}

bool find_mapped(uint64_t device, uint64_t inode, const Extent& own, std::vector<Mapped>& out) {
  out.clear();
  Search search{device, inode, own, &out};
  const offpath_maps_visitor_t visitor{keep_mapped, nullptr, &search};
  return offpath_maps_visit("/proc/self/maps", &visitor) == 0;
}

Extents still_there(const Extent& pages, uint64_t offset, std::span<const Mapped> mapped) {
  Extents out;
  for (const Mapped& one : mapped) {
    if (!one.pages.overlaps(pages) || one.offset - one.pages.begin != offset - pages.begin) continue;
    const Extent part{std::max(pages.begin, one.pages.begin), std::min(pages.end, one.pages.end)};
    if (!out.empty() && part.begin <= out.back().end) {
      out.back().end = std::max(out.back().end, part.end);
    } else {
      out.push_back(part);
    }
  }
  return out;
}

uint64_t objects_changed() {
  uint64_t count = 0;
  const auto first = [](dl_phdr_info* info, size_t, void* out) {
    *static_cast<uint64_t*>(out) = info->dlpi_adds + info->dlpi_subs;
    return 1;
  };
  dl_iterate_phdr(first, &count);
  return count;
}

bool strict_overcommit() {
  const int file = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
  char value = '2';
  if (file < 0) return true;
  const ssize_t got = read(file, &value, 1);
  close(file);
  return got != 1 || value == '2';
}

}  // namespace offpath::client::moved
