// SPDX-License-Identifier: BSD-3-Clause
// Roster: where the members of a team are served. Each worker is in it once, however many members it serves, and copies share it all:
// most members of a large team have neighbours at the same worker, whose rosters are the same. Teams on the same workers share what
// is long of these. What it says never changes. Threads: any.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

namespace offpath::engine {

// Of a service; what a member is served by.
struct WorkerAddress {
  bool local = false;  // of this service: then `worker`, else `address`
  uint32_t worker = 0;
  std::vector<uint8_t> address;  // of the worker on the fabric
  bool operator==(const WorkerAddress&) const = default;
};

class Roster {
 public:
  Roster() : Roster(std::initializer_list<WorkerAddress>{}) {}
  // By member.
  Roster(std::initializer_list<WorkerAddress> members) : Roster(std::span(members.begin(), members.size())) {}
  explicit Roster(std::span<const WorkerAddress> members);
  // `worker_of`: by member, less than workers.size(). Workers may be there twice, or in vain.
  Roster(std::span<const WorkerAddress> workers, std::span<const uint32_t> worker_of);

  size_t size() const { return all_->worker_of.size(); }
  const WorkerAddress& operator[](size_t member) const { return (*all_->workers)[all_->worker_of[member]]; }
  // A number among workers(), which are in the order of their first members.
  uint32_t worker_of(size_t member) const { return all_->worker_of[member]; }
  const std::vector<uint32_t>& worker_of() const { return all_->worker_of; }
  const std::vector<WorkerAddress>& workers() const { return *all_->workers; }
  bool operator==(const Roster& other) const {
    return all_ == other.all_ || (all_->worker_of == other.all_->worker_of && workers() == other.workers());
  }
  // Keeps once what is the same in both: all of it, or the workers. Whether all is.
  bool share(const Roster& other);

 private:
  struct All {
    std::shared_ptr<const std::vector<WorkerAddress>> workers;
    std::vector<uint32_t> worker_of;
  };
  std::shared_ptr<const All> all_;
};

}  // namespace offpath::engine
