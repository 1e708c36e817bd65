// SPDX-License-Identifier: BSD-3-Clause
// Regions: the memory of a window, and who still works on it. Memory that is taken out cannot be found any more at
// once, but is released, with a callback, only when nobody works on it.
#pragma once

#include "ops/onesided/onesided.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace offpath::ops::onesided {

using Released = std::function<void()>;

class Region {
 public:
  Region(uint64_t base, uint64_t bytes) : base_(base), bytes_(bytes) {}
  uint64_t base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t end() const { return base_ + bytes_; }
  // A graph works on it, until it lets go.
  void hold() { ++users_; }
  void let_go();
  // Calls once nobody holds it.
  void release(Released released);

 private:
  uint64_t base_, bytes_;
  size_t users_ = 0;
  Released released_;
};

class Regions {
 public:
  // False: empty, beyond the last address, or over another one.
  bool add(uint64_t base, uint64_t bytes);
  // False, and nothing is called: none begins there.
  bool remove(uint64_t base, Released released);
  void remove_all(Released released);
  // The regions that together hold all bytes that `wanted` names when its first element lies at `origin` + its offset,
  // and the element's address. Empty: it names others, too, or nothing. Linear in regions and ranges.
  using ByBase = std::map<uint64_t, std::shared_ptr<Region>>;
  struct Found {
    ByBase::const_iterator first, last;
    ByBase::const_iterator begin() const { return first; }
    ByBase::const_iterator end() const { return last; }
    bool empty() const { return first == last; }
  };
  Found find(const Wanted& wanted, uint64_t origin, uint64_t& address) const;

 private:
  ByBase by_base_;  // none over another
};

}  // namespace offpath::ops::onesided
