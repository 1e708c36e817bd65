// SPDX-License-Identifier: BSD-3-Clause
// The windows of this rank's regions, found by their names and by the host windows they belong to.
//
// Progress thread only.
#pragma once

#include "mpi/proxy/progress.hpp"
#include "mpi/proxy/region_window.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

namespace offpath::mpi::regions {

class RegionWindows {
 public:
  explicit RegionWindows(Progress& progress) : progress_(progress) {}

  void create(Upcall upcall, std::shared_ptr<Contexts> contexts);
  void serve(Upcall upcall);
  // The one that belongs to a host window; nothing: not yet.
  std::shared_ptr<RegionWindow> partner_of(const HostWindow& host);

 private:
  Progress& progress_;
  uint64_t last_name_ = offpath::regions::kPredefined;
  std::unordered_map<uint64_t, std::weak_ptr<RegionWindow>> windows_;
};

// What a host side waits for from its partner: a transfer or a fence. Runs as soon as the partner is open.
class HostTask : public Task {
 public:
  using Run = std::function<void(RegionWindow&, const std::shared_ptr<HostWindow>&)>;
  HostTask(RegionWindows& windows, std::shared_ptr<HostWindow> host, Run run)
      : windows_(windows), host_(std::move(host)), run_(std::move(run)) {}
  bool advance() override;
  void give_up() override { host_->end(MPI_ERR_OTHER); }

 private:
  RegionWindows& windows_;
  std::shared_ptr<HostWindow> host_;
  Run run_;
};

}  // namespace offpath::mpi::regions
