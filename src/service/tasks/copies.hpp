// SPDX-License-Identifier: BSD-3-Clause
// Copies: what lies in clients' memory that executors do not share, to the board and back. Where a port answers at once,
// a bounded number of bytes in a round; where it answers later (an agent), several pieces of each copy at a time. Used by
// the worker's thread alone.
#pragma once

#include "memory/completions.hpp"

#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace offpath::service {

class Copies {
 public:
  static constexpr uint64_t kRoundBytes = 4 << 20;     // then the worker looks at the rest of its work
  static constexpr uint64_t kPieceBytes = 256 << 10;   // of ports that answer later
  static constexpr uint64_t kUnderWayBytes = 1 << 20;  // of each copy there

  enum class Way : uint8_t { in, out };
  struct Part {
    uint64_t address;  // of the client
    uint64_t bytes;
    uint8_t* here;
    uint32_t range;  // which one of the task it is
  };
  // `range`: the one that could not be reached, if any.
  using OnOver = std::function<void(const base::Status& status, uint32_t range)>;

  // `wake`: has progress() called soon; by any thread.
  explicit Copies(std::function<void()> wake) : ended_(std::move(wake)) {}

  // `on_over` is called once, inside progress(). Until then it uses the buffers. Its number, never 0.
  uint64_t begin(std::shared_ptr<memory::Port> memory, Way way, std::vector<Part> parts, OnOver on_over);
  // No more of it begins; it is over when nothing is under way.
  void stop(uint64_t number) { copies_.at(number).stopped = true; }
  // Whether anything was done.
  bool progress();
  // progress() would do something now.
  bool pending();

 private:
  struct Copy {
    std::shared_ptr<memory::Port> memory;
    Way way;
    std::vector<Part> parts;
    OnOver on_over;
    size_t part = 0;  // that is being copied, from `begun` on
    uint64_t begun = 0;
    uint64_t under_way_bytes = 0;
    uint32_t under_way = 0;
    bool stopped = false;
    base::Status status;
    uint32_t range = 0;  // that could not be reached

    bool all_begun() const { return stopped || !status.ok() || part == parts.size(); }
    bool over() const { return all_begun() && under_way == 0; }
  };
  struct Access {
    uint64_t copy;
    uint64_t bytes;
    uint32_t range;
  };
  bool reap();
  bool advance(uint64_t number, Copy& copy, uint64_t& budget);
  static void fail(Copy& copy, const base::Status& status, uint32_t range);

  memory::Completions ended_;
  std::map<uint64_t, Copy> copies_;  // the older one goes first
  std::unordered_map<uint64_t, Access> accesses_;
  uint64_t next_ = 1;
};

}  // namespace offpath::service
