// SPDX-License-Identifier: BSD-3-Clause
#include "client/moved/uses.hpp"

#include <algorithm>

namespace offpath::client::moved {

Uses::Entry& Uses::find(const Extent& stretch) {
  Entry* oldest = entries_.data();
  for (Entry& entry : entries_) {
    if (entry.stretch == stretch) {
      entry.last = ++now_;
      return entry;
    }
    if (entry.last < oldest->last) oldest = &entry;
  }
  *oldest = {stretch, 0, ++now_};
  return *oldest;
}

bool Uses::count(const Extent& stretch) {
  Entry& entry = find(stretch);
  return entry.uses != kRefused && (entry.uses = std::min(entry.uses + 1, due_)) >= due_;
}

void Uses::refuse(const Extent& stretch) { find(stretch).uses = kRefused; }
void Uses::forget(const Extent& stretch) { find(stretch) = {}; }

}  // namespace offpath::client::moved
