// SPDX-License-Identifier: BSD-3-Clause
// Services that give no sign of life while something is awaited from them: stopped, or behind a link that is cut. They
// are asked by address, not by team: the other side's end of a team may well not be there yet, and it may never have
// spoken to this one. A service that answers late says for how long it waited for a processor. It may do so again, and is
// given that much more time.
#include "base/clock.hpp"
#include "base/log.hpp"
#include "engine/carriers/sender.hpp"
#include "engine/rooms/arrivals.hpp"
#include "engine/rooms/calls.hpp"
#include "engine/rooms/peers.hpp"

#include <algorithm>

namespace offpath::engine {

using wire::Kind;
using wire::Message;

std::set<fabric::Peer> Peers::awaited_peers() const {
  std::set<fabric::Peer> out;
  for (const auto& [key, team] : core_.teams) {
    std::vector<uint8_t> needed(team->spec.members.size(), 0);
    for (const auto& [operation_key, operation] : team->operations) {
      std::vector<uint8_t> members = needed_members(*operation);
      Arrivals::add_awaited(*operation, members);
      for (size_t rank = 0; rank < needed.size(); ++rank) needed[rank] |= members[rank];
    }
    for (uint32_t rank = 0; rank < needed.size(); ++rank) {
      if (Calls::awaits(*team, rank)) needed[rank] = 1;
      const bool reached = team->peer(rank) >= 0 && team->lost[rank] == 0;
      if (needed[rank] != 0 && reached) out.insert(static_cast<fabric::Peer>(team->peer(rank)));
    }
  }
  return out;
}

void Peers::watch(uint64_t now_ns) {
  using Verdict = base::Silence::Verdict;
  const std::set<fabric::Peer> awaited = awaited_peers();
  const auto rests = [&](const auto& entry) { return !awaited.contains(entry.first); };
  std::erase_if(watched_, [&](const auto& entry) { return rests(entry) && !entry.second.silence.spares(); });
  for (auto& entry : watched_) {
    if (rests(entry)) entry.second.silence.rest();
  }
  std::vector<fabric::Peer> silent;
  for (const fabric::Peer peer : awaited) {
    Watched& watched = watched_.try_emplace(peer, Watched{base::Silence(config_.silence_ns)}).first->second;
    const Verdict verdict = watched.silence.look(now_ns, watched.answered, [&] {
      say_address(peer, Kind::ping, watched.silence.unanswered_ns());
      return uint64_t{0};  // only the peer knows
    });
    if (verdict == Verdict::ask) {
      watched.answered = false;
      say_address(peer, Kind::ping, 0);
    }
    if (verdict == Verdict::silent) silent.push_back(peer);
  }
  for (const fabric::Peer peer : silent) {
    base::log_write(base::LogLevel::warn, "another service gave no sign of life for %llu ms: given up",
                    static_cast<unsigned long long>(config_.silence_ns / 1000000));
    watched_.erase(peer);
    given_up_.insert(peer);
    fabric_.give_up(peer);
  }
}

// From a memory of its own: silent ones may have all the chunks.
void Peers::say_address(fabric::Peer peer, Kind kind, uint64_t waited_ns) {
  if (own_address_.empty()) own_address_ = fabric_.address();
  Message message;
  message.kind = kind;
  message.waited_ns = waited_ns;
  uint8_t header[wire::kMaxMessageBytes];
  const size_t length = wire::encode(message, header);
  fabric_.send(peer, fabric::Bytes(header, length), own_address_, 0);
}

// `address`: of the service that asks, or answers.
void Peers::handle_sign_of_life(const Message& message, fabric::Bytes address) {
  std::optional<fabric::Peer> peer = fabric_.find(address);
  if (!peer && message.kind == Kind::ping) {
    const auto made = fabric_.connect(address);
    if (made.ok()) peer = made.value();
  }
  if (!peer || sender_.is_lost(*peer)) return;
  if (const auto sought = sought_.extract(*peer); !sought.empty()) note_found(sought.mapped());
  if (message.kind == Kind::ping) {
    const auto own = [&] { return own_waits_.try_emplace(*peer, config_.own_waits_ns).first->second.since_told_ns(); };
    return say_address(*peer, Kind::pong, message.waited_ns == 0 ? 0 : own());
  }
  const auto found = watched_.find(*peer);
  if (found == watched_.end()) return;
  found->second.answered = true;
  found->second.silence.note_starved(message.waited_ns);
}

}  // namespace offpath::engine
