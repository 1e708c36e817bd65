// SPDX-License-Identifier: BSD-3-Clause
// A multicast group in virtual time: what one member sends passes its link up once and those down of all others. Nothing is
// lost, overtakes, or comes twice. A chunk here is what a service sends at once, many datagrams.
#pragma once

#include "fabric/group.hpp"
#include "model/account.hpp"
#include "model/machine.hpp"
#include "model/network.hpp"

#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace offpath::model {

class VirtualGroup;

// By number in the group.
using VirtualMembers = std::map<uint32_t, VirtualGroup*>;

class VirtualGroup : public fabric::Group {
 public:
  struct Place {
    Network& network;
    const Machine& machine;
    Account& account;
    Action ring;  // progress() has something to do
    uint32_t node = 0;
    uint64_t connection = 0;  // of its own in the network
  };
  VirtualGroup(Place place, std::shared_ptr<VirtualMembers> members, uint32_t own);
  ~VirtualGroup() override;

  size_t chunk_bytes() const override { return kChunkBytes; }
  bool push(uint64_t task, uint32_t chunk, fabric::Bytes bytes) override;
  bool progress(uint64_t now_ns, fabric::Hearer& hearer) override;
  bool idle() const override { return under_way_ == 0; }
  uint64_t wait_ns(uint64_t) override { return UINT64_MAX; }
  void set_rate(double) override {}  // links share their rate among those who send
  int event_fd() const override { return -1; }
  const fabric::GroupCounts& counts() const override { return counts_; }

 private:
  struct Chunk {
    fabric::Label label;
    std::vector<uint8_t> bytes;
  };
  void leave(const std::shared_ptr<const Chunk>& chunk);

  static constexpr size_t kChunkBytes = 32 << 10;
  static constexpr uint32_t kMostUnderWay = 2;

  const Place place_;
  const std::shared_ptr<VirtualMembers> members_;
  const uint32_t own_;
  uint32_t under_way_ = 0;
  std::deque<std::shared_ptr<const Chunk>> arrived_;
  fabric::GroupCounts counts_;
};

}  // namespace offpath::model
