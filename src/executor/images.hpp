// SPDX-License-Identifier: BSD-3-Clause
// Images: the ELF images that were loaded, and how their entries are found and run. Images stay until the process ends.
#pragma once

#include "base/result.hpp"

#include <link.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace offpath::executor {

// Where a loaded object lies.
struct Extent {
  uint64_t begin, end, base;
  bool holds(uint64_t instruction) const { return instruction >= begin && instruction < end; }
};
Extent extent_of(const dl_phdr_info& object);

class Images {
 public:
  static constexpr size_t kMaxImages = 1024;

  // Addresses of the named entries, in order. Errors: the loader's words, or which entry is missing.
  base::Result<std::vector<uint64_t>> load(std::span<const uint8_t> image, const std::vector<std::string>& names);
  // The image an instruction belongs to, and its address in the image's file; false: none. Safe in signal handlers.
  bool locate(uint64_t instruction, uint64_t& image, uint64_t& offset) const;

 private:
  std::mutex mutex_;
  Extent extents_[kMaxImages] = {};
  std::atomic<size_t> count_{0};
};

// Loads an image with what it needs, for as long as the process lives. `name`: in the loader's list it is a nameless file with that name.
base::Result<void*> open_image(std::span<const uint8_t> image, const std::string& name);

// Calls an entry with pointer-sized arguments, of which there are at most device::kMaxArguments.
void call_entry(uint64_t entry, std::span<const uint64_t> arguments);

}  // namespace offpath::executor
