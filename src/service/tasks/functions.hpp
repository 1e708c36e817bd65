// SPDX-License-Identifier: BSD-3-Clause
// Functions: what tasks call, by number: as executors find it on the board, and what its tasks have taken here. Used by the
// worker's thread alone.
#pragma once

#include "service/tasks/room.hpp"
#include "tasks/balance.hpp"

#include <vector>

namespace offpath::service {

class Functions {
 public:
  explicit Functions(Room& room) : room_(room) {}

  // How tasks name it.
  base::Result<uint32_t> number_of(tasks::Function function);
  bool knows(uint32_t number) const { return number < known_.size(); }
  const tasks::Function& operator[](uint32_t number) const { return known_[number].function; }
  // As measured; what its submitter says of it where nothing was.
  uint64_t cost_of(const tasks::Task& task) const;
  // A task has ended well.
  void note_run(const tasks::Task& task, uint64_t run_ns);

 private:
  struct Known {
    tasks::Function function;
    tasks::Mean cost;  // what its tasks have taken
    double hint = 0;   // that by what their submitters said; 0: not known
  };
  Room& room_;
  std::vector<Known> known_;
};

}  // namespace offpath::service
