// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/loopback/groups.hpp"

#include <map>
#include <random>

namespace offpath::fabric {
namespace {

constexpr size_t kBatch = 64;       // datagrams that wait to be sent
constexpr size_t kHeard = 64;       // delivered in one round
constexpr size_t kOvertakers = 8;   // at most
constexpr size_t kRecorded = 4096;  // what stale ones are drawn from

struct Datagram {
  Label label;
  std::vector<uint8_t> bytes;
};
using Shared = std::shared_ptr<const Datagram>;

struct Team {
  std::map<uint32_t, std::vector<Shared>> inboxes;  // by member
  std::vector<Shared> recorded;
};

}  // namespace

struct LoopbackGroups::State {
  bool chance(double part) { return part > 0 && std::uniform_real_distribution<>(0, 1)(random) < part; }
  size_t draw(size_t below) { return static_cast<size_t>(random() % below); }

  std::mt19937_64 random;
  GroupFaults faults;
  std::map<uint64_t, Team> teams;
};

class LoopbackGroup : public Group {
 public:
  LoopbackGroup(LoopbackGroups::State& state, uint64_t team, uint32_t own, size_t chunk_bytes)
      : state_(state), team_(state.teams[team]), own_(own), chunk_bytes_(chunk_bytes) {
    team_.inboxes[own];
  }
  ~LoopbackGroup() override { team_.inboxes.erase(own_); }

  size_t chunk_bytes() const override { return chunk_bytes_; }
  bool push(uint64_t task, uint32_t chunk, Bytes bytes) override {
    if (batch_.size() == kBatch) return false;
    batch_.push_back(std::make_shared<Datagram>(Datagram{{task, chunk, own_}, {bytes.begin(), bytes.end()}}));
    return true;
  }
  bool progress(uint64_t, Hearer& hearer) override {
    const bool sent = !batch_.empty();
    for (const Shared& datagram : batch_) send(datagram);
    batch_.clear();
    std::vector<Shared>& inbox = team_.inboxes[own_];
    size_t heard = 0;
    for (; heard < kHeard && !inbox.empty(); ++heard) {
      const bool overtaken = state_.chance(state_.faults.overtaken);
      const size_t index = overtaken ? state_.draw(std::min(inbox.size(), kOvertakers)) : 0;
      const Shared datagram = inbox[index];
      inbox.erase(inbox.begin() + static_cast<std::ptrdiff_t>(index));
      ++counts_.received;
      hearer.on_chunk(datagram->label, datagram->bytes);
    }
    return sent || heard > 0;
  }
  bool idle() const override { return batch_.empty(); }
  uint64_t wait_ns(uint64_t) override { return idle() ? UINT64_MAX : 0; }
  void set_rate(double) override {}
  int event_fd() const override { return -1; }
  const GroupCounts& counts() const override { return counts_; }

 private:
  void send(const Shared& datagram) {
    ++counts_.sent;
    if (team_.recorded.size() < kRecorded) team_.recorded.push_back(datagram);
    if (state_.chance(state_.faults.lost_for_all)) return;
    for (auto& [member, inbox] : team_.inboxes) {
      if (member == own_) continue;
      if (state_.chance(state_.faults.stale)) arrive(inbox, team_.recorded[state_.draw(team_.recorded.size())], member);
      if (!state_.chance(state_.faults.lost)) arrive(inbox, datagram, member);
      if (state_.chance(state_.faults.doubled)) arrive(inbox, datagram, member);
    }
  }
  void arrive(std::vector<Shared>& inbox, const Shared& datagram, uint32_t member) {
    const bool fits = state_.faults.room == 0 || inbox.size() < state_.faults.room;
    if (fits && datagram->label.sender != member) inbox.push_back(datagram);
  }

  LoopbackGroups::State& state_;
  Team& team_;
  const uint32_t own_;
  const size_t chunk_bytes_;
  std::vector<Shared> batch_;
  GroupCounts counts_;
};

LoopbackGroups::LoopbackGroups(uint64_t seed, const GroupFaults& faults) : state_(std::make_unique<State>()) {
  state_->random.seed(seed);
  state_->faults = faults;
}
LoopbackGroups::~LoopbackGroups() = default;

void LoopbackGroups::set_faults(const GroupFaults& faults) { state_->faults = faults; }

std::unique_ptr<Group> LoopbackGroups::join(uint64_t team, uint32_t own, size_t chunk_bytes) {
  return std::make_unique<LoopbackGroup>(*state_, team, own, chunk_bytes);
}

}  // namespace offpath::fabric
