// SPDX-License-Identifier: BSD-3-Clause
// Join: several accesses of a port that are one to who asked for it.
//
//   Join join(ticket);
//   for (...) if (!join.add(port.read(..., join.next()))) break;   // false: no use to go on
//   return join.end();
#pragma once

#include "memory/port.hpp"

#include <memory>

namespace offpath::memory {

class Join {
 public:
  explicit Join(Ticket whole);
  ~Join();
  Ticket next();
  bool add(const Outcome& outcome);
  Outcome end();

 private:
  class Parts;
  std::shared_ptr<Parts> parts_;
};

}  // namespace offpath::memory
