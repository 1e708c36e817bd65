// SPDX-License-Identifier: BSD-3-Clause
// Steady: memory of this process that stays mapped until that ends: what a network card may be given. Whoever keeps
// something about memory hears of its end before the memory goes, as other memory may come to the same address. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace offpath::base {

class Steady {
 public:
  // Others who have the same memory may punch holes into it: then the address stays, and other pages come behind it.
  enum class Pages { stay, may_change };
  struct Range {
    uintptr_t begin = 0, end = 0;
    Pages pages = Pages::stay;
  };
  class Keeper {
   public:
    virtual ~Keeper() = default;
    // On the thread that ends it. No function of Steady may be called from here.
    virtual void on_end(Range range) = 0;
  };

  Steady() = default;
  // Ranges do not overlap.
  Steady(const void* data, size_t bytes, Pages pages = Pages::stay);
  Steady(Steady&& other) noexcept;
  Steady& operator=(Steady&& other) noexcept;
  ~Steady();

  // The range that all of these bytes lie in.
  static std::optional<Range> around(const void* data, size_t bytes);
  static void add(Keeper& keeper);
  static void remove(Keeper& keeper);

 private:
  Range range_;
};

}  // namespace offpath::base
