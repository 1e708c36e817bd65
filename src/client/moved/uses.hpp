// SPDX-License-Identifier: BSD-3-Clause
// Uses: how often stretches of memory were used lately, and which of them cannot be moved. Small: what is forgotten is
// counted anew. Pure.
#pragma once

#include "client/moved/extents.hpp"

#include <array>

namespace offpath::client::moved {

class Uses {
 public:
  static constexpr size_t kEntries = 256;
  // `due`: from which use on a stretch is moved.
  explicit Uses(uint32_t due) : due_(due) {}
  // One more use of just this stretch. True: it is due. One that was refused never is.
  bool count(const Extent& stretch);
  // Remembered until it is pushed out.
  void refuse(const Extent& stretch);
  void forget(const Extent& stretch);

 private:
  static constexpr uint32_t kRefused = UINT32_MAX;
  struct Entry {
    Extent stretch;
    uint32_t uses = 0;
    uint64_t last = 0;
  };
  Entry& find(const Extent& stretch);  // or the one unused for longest, made this

  uint32_t due_;
  uint64_t now_ = 0;
  std::array<Entry, kEntries> entries_;
};

}  // namespace offpath::client::moved
