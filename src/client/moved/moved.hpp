// SPDX-License-Identifier: BSD-3-Clause
// Moved: memory of the program that communicates again and again is moved, where it lies, into the memory that is shared
// with the service (docs/design/0017-mapped-memory.md). All with the session's mutex held.
//
// Nobody may write memory that an operation names while it is posted, so its whole pages can be exchanged for pages with the
// same contents then. Where somebody may all the same, it is kept where it is (keep.hpp), or the operation comes after another one. Whatever
// cannot be moved, or may have become other memory since, goes by copies, as without this.
#pragma once

#include "base/fd.hpp"
#include "base/memfd.hpp"
#include "client/heap.hpp"
#include "client/moved/memory_kind.hpp"
#include "client/moved/uses.hpp"
#include "session/layout.hpp"
#include "watch/watch.h"

#include <memory>

namespace offpath::client::moved {

struct Totals {
  uint64_t moved = 0;  // stretches
  uint64_t moved_bytes = 0;
  uint64_t dropped = 0;         // became other memory, or part of them did
  uint64_t refused_kind = 0;    // not plain memory
  uint64_t refused_window = 0;  // others may write it at any time
  uint64_t refused_room = 0;    // no memory, no room for it, or the process forks
};

class Moved {
 public:
  // As OFFPATH_MAPPED says; null: nothing is to be moved, or cannot be watched then.
  static std::unique_ptr<Moved> make(const base::Memfd& segment, Heap& heap);
  ~Moved();
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;

  // Before anything is submitted that names memory.
  void use(const Named& named);
  const Totals& totals() const { return totals_; }
  Extents covered() const;

 private:
  struct Stretch {
    Extent pages;
    uint64_t offset;  // in the heap
    int entry;        // of the watch
    bool known;       // to be there still
  };

  Moved(const base::Memfd& segment, Heap& heap, const offpath_watch_t& watch, int source, uint32_t due);
  // Finds out which stretches are still what they were, unless that is known.
  void check(std::span<const Extent> used);
  bool in_place(const Extent& pages) const;
  void look_again();
  void settle(const Stretch& stretch, const Extents& there);
  void consider(const Extent& pages);
  // False: there is no room for it. Between the watch's begin() and end(), as the next one.
  bool move(const Extent& pages);
  uint64_t move_pages(const Extent& pages, uint64_t offset);
  void publish();
  void punch(uint64_t heap_offset, uint64_t bytes) const;

  const base::Memfd& segment_;
  Heap& heap_;
  const offpath_watch_t& watch_;
  const int source_;
  Uses uses_;
  base::Fd pagemap_;
  uint64_t device_ = 0, inode_ = 0;  // of the segment
  std::vector<Stretch> stretches_;   // by address
  uint32_t doubts_seen_ = 0;
  uint64_t objects_seen_ = 0;
  bool changed_ = false;  // since the table was published
  bool full_ = false;     // there was no room for more
  Totals totals_;
};

}  // namespace offpath::client::moved
