// SPDX-License-Identifier: BSD-3-Clause
// A served client as observers see it.
#include "service/served_client.hpp"

#include <numeric>

namespace offpath::service {

using session::Slot;

namespace {

template <typename T>
void set(std::atomic<T>& field, uint64_t value) {
  field.store(static_cast<T>(value), std::memory_order_relaxed);
}

uint64_t total(const std::vector<memory::Block>& blocks) {
  return std::accumulate(blocks.begin(), blocks.end(), uint64_t{0},
                         [](uint64_t sum, const memory::Block& block) { return sum + block.bytes; });
}

}  // namespace

void ServedClient::show(session::ClientRecord& record) const {
  const session::Counters& counters = view_.header().counters;
  set(record.id, id_);
  set(record.process, static_cast<uint32_t>(process_));
  set(record.rank, rank_);
  set(record.team_size, team_size_);
  set(record.in_flight, in_flight_.count());
  set(record.posted, in_flight_.posted());
  set(record.done, in_flight_.posted() - in_flight_.count());
  set(record.failed, counters.failed.load(std::memory_order_relaxed));
  set(record.pulled_bytes, counters.pulled_bytes.load(std::memory_order_relaxed));
  set(record.served_bytes, counters.served_bytes.load(std::memory_order_relaxed));
  set(record.local_bytes, counters.local_bytes.load(std::memory_order_relaxed));
  set(record.progress_ns, in_flight_.progress_ns(InFlight::now_ns()));
  set(record.waited_ns, view_.waited_ns(InFlight::now_ns()));
  const auto oldest = in_flight_.oldest();
  if (oldest) return show_operation(*oldest, record.oldest);
  set(record.oldest.kind, static_cast<uint32_t>(session::OpKind::none));
}

// Without all of it the energy is not known, so nothing is said of it.
void ServedClient::charge(const Charges::Share& share) {
  session::SegmentHeader& head = view_.header();
  if (share.cpu_ns > 0) head.elsewhere_cpu_ns.fetch_add(share.cpu_ns, std::memory_order_relaxed);
  if (share.energy_uj > 0) head.energy_uj.fetch_add(share.energy_uj, std::memory_order_relaxed);
  if (!share.energy_is_known && head.energy_uj.load(std::memory_order_relaxed) != 0) set(head.energy_uj, 0);
}

// The slot is the client's, which may write nonsense: then nonsense is shown, of this client.
void ServedClient::show_operation(uint32_t index, session::OldestRecord& record) const {
  const Slot& slot = view_.slot(index);
  const auto kind = static_cast<session::OpKind>(slot.kind);
  base::Standing standing;
  uint64_t bytes = 0, form = 0;
  uint32_t team_size = 0;
  if (kind == session::OpKind::remote) {
    if (const auto window = windows_.find(slot.window); window != windows_.end()) team_size = window->second.team_size;
    const auto origin = remote::decode_origin(view_.record(slot));
    const auto asked = origin.ok() ? remote::decode(origin->body, remote::Data::may_follow) : origin.status();
    if (asked.ok()) {
      form = asked->wanted.kind;
      bytes = asked->wanted.bytes;
      standing = {base::Waits::answers, 1, {origin->target}};
    }
  } else if (does(kind, session::kNamesAfter) && kind != session::OpKind::task) {
    if (const auto transfer = files::decode(view_.record(slot)); transfer.ok()) bytes = transfer->memory.bytes;
  } else if (const auto team = teams_.find(slot.team); team != teams_.end()) {
    standing = here_->engine.standing(team->second.handle, slot.sequence);
    team_size = team->second.topology.size();
    if (kind == session::OpKind::collective) {
      if (const auto collective = collective::decode(view_.record(slot)); collective.ok()) {
        form = collective->kind;
        bytes = collective->recv.empty() ? total(collective->send) : total(collective->recv);
      }
    }
  }
  set(record.kind, static_cast<uint32_t>(kind));
  set(record.form, form);
  set(record.bytes, bytes);
  set(record.age_ns, InFlight::now_ns() - in_flight_.since_ns(index));
  set(record.waits, static_cast<uint32_t>(standing.waits));
  set(record.members_count, standing.count);
  for (size_t i = 0; i < standing.members.size(); ++i) set(record.members[i], standing.members[i]);
  set(record.team_size, team_size);
}

}  // namespace offpath::service
