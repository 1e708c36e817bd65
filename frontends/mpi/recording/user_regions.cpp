// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/recording/user_regions.hpp"

#include <algorithm>
#include <atomic>

namespace offpath::mpi::recording {

uint16_t UserRegions::number_of(Part& part, std::string_view name) {
  name = name.substr(0, kMaxNameBytes);
  if (const auto it = names_.find(name); it != names_.end()) return it->second;
  if (names_.size() >= kMaxNames) return part.text(std::string_view("(more names)"));
  return names_[std::string(name)] = part.text(name);
}

void UserRegions::begin(Part& part, uint32_t thread, std::string_view name, uint64_t now_ns) {
  auto& [open, deeper] = threads_[thread];
  if (open.size() == kMaxDepth) {
    ++deeper;
  } else {
    open.push_back({number_of(part, name), now_ns});
  }
}

void UserRegions::end(Part& part, uint32_t thread, std::string_view name, uint64_t now_ns) {
  auto& [open, deeper] = threads_[thread];
  if (deeper > 0) {  // those that are left out have no names: each end is taken for one of theirs
    --deeper;
    return;
  }
  const uint16_t number = number_of(part, name);
  const auto found =
      std::find_if(open.rbegin(), open.rend(), [number](const Open& each) { return each.name == number; });
  if (found == open.rend()) return;
  const auto left = static_cast<size_t>(open.rend() - found) - 1;
  for (; open.size() > left; open.pop_back()) {
    part.add(Tag::region, 0, open.back().name, RegionBody{open.back().begin_ns, now_ns, thread});
  }
}

void UserRegions::end_all(Part& part, uint64_t now_ns) {
  for (auto& [number, thread] : threads_) {
    for (; !thread.open.empty(); thread.open.pop_back()) {
      const Open& last = thread.open.back();
      part.add(Tag::region, kLeftOpen, last.name, RegionBody{last.begin_ns, std::max(last.begin_ns, now_ns), number});
    }
  }
}

uint32_t thread_number() {
  static std::atomic<uint32_t> threads{0};
  thread_local const uint32_t number = threads++;
  return number;
}

}  // namespace offpath::mpi::recording
