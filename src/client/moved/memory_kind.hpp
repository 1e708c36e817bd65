// SPDX-License-Identifier: BSD-3-Clause
// What kind of memory lies somewhere in this process, as the kernel says.
#pragma once

#include "client/moved/extents.hpp"

namespace offpath::client::moved {

// Whether it is plain memory of the program: private, of no file, readable and writable, of ordinary pages, not locked, no
// stack, no variables of a program or library, nothing a program has asked the kernel to treat in its own way. Reads
// /proc/self/smaps: milliseconds.
bool is_plain(const Extent& pages);

// Pages of the file that are mapped shared outside `own`, by address; `offset` in the file. False: it cannot be read.
struct Mapped {
  Extent pages;
  uint64_t offset;
};
bool find_mapped(uint64_t device, uint64_t inode, const Extent& own, std::vector<Mapped>& out);

// What of a stretch of the file at `offset` is still mapped at `pages`. Pure.
Extents still_there(const Extent& pages, uint64_t offset, std::span<const Mapped> mapped);

// How many objects (programs and libraries) were ever loaded or unloaded: they map memory unseen.
uint64_t objects_changed();

// Whether memory that is written for the first time can fail to be there (vm.overcommit_memory=2).
bool strict_overcommit();

}  // namespace offpath::client::moved
