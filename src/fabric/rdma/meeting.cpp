// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"
#include "fabric/rdma/endpoint.hpp"

#include <sys/epoll.h>

#include <utility>

namespace offpath::fabric::rdma {

// Our end of a connection, or that there is none to be had: then this peer's payloads go over TCP.
void Endpoint::greet(fabric::Peer number) {
  Peer& to = peer(number);
  if (std::exchange(to.greeted, true)) return;
  to.meeting = Meeting::greeted;
  to.pair = Pair::make(device_, completions_.get());
  const std::vector<uint8_t> own = tcp_->address();
  Word word;
  word.kind = Word::Kind::hello;
  word.you = number;
  if (to.pair != nullptr) word.end = to.pair->address();
  word.rest = own;
  say(number, word);
}

// Both may say it first.
void Endpoint::on_hello(const Word& word) {
  const auto found = tcp_->connect(word.rest);
  if (!found.ok()) return;
  Peer& from = peer(found.value());
  if (from.lost || from.itself || from.meeting == Meeting::open) return;
  from.number = word.you;
  greet(found.value());
  if (from.pair == nullptr || !from.pair->join(word.end)) return go_without(found.value());
  Word ready;
  ready.kind = Word::Kind::ready;
  ready.from = reinterpret_cast<uint64_t>(trial_.data());
  ready.key = trial_memory_->rkey;
  say(found.value(), ready);
}

// Whoever says so has joined. That two cards know each other does not mean that packets of that length go from one to the other, so
// nothing is offered before both have read something.
void Endpoint::on_ready(const Word& word) {
  Peer& from = *peers_[word.to];
  if (from.pair == nullptr || !from.pair->joined() || std::exchange(from.trying, true)) return;
  const Announcement what{word.to, kTrial, word.from, word.key, kTrialBytes};
  from.waiting.push_front({what, trial_.data() + kTrialBytes, 0, trial_memory_});
  eager_.insert(word.to);
  may_start_ = true;
}

void Endpoint::on_trial(fabric::Peer number, ibv_wc_status status) {
  Peer& from = *peers_[number];
  if (from.lost) return;
  if (status != IBV_WC_SUCCESS) {
    base::log_write(
        base::LogLevel::warn,
        "the RDMA device does not reach that of peer service %u (%s), so TCP carries all. Name another device in "
        "OFFPATH_UCX_NET_DEVICES, or set OFFPATH_FABRIC=tcp",
        number, ibv_wc_status_str(status));
    return go_without(number);
  }
  from.reaches = true;
  if (from.is_reached) from.meeting = Meeting::open;
  Word reached;
  reached.kind = Word::Kind::reached;
  say(number, reached);
}

void Endpoint::on_reached(fabric::Peer number) {
  Peer& from = *peers_[number];
  from.is_reached = true;
  if (from.reaches) from.meeting = Meeting::open;
}

void Endpoint::go_without(fabric::Peer number) {
  peers_[number]->meeting = Meeting::without;
  end_pair(number);
}

void Endpoint::end_pair(fabric::Peer number) {
  Peer& from = *peers_[number];
  from.pair.reset();
  for (const Read& read : std::exchange(from.waiting, {})) fail(read);
  for (auto next = reads_.begin(); next != reads_.end();) {
    if (next->second.what.peer == number) fail(next->second);
    next = next->second.what.peer == number ? reads_.erase(next) : std::next(next);
  }
}

// It completes nothing any more. Who had read from it, or was to, is lost.
void Endpoint::lose_device() {
  has_device_ = false;
  base::log_write(base::LogLevel::warn,
                  "the RDMA device has failed or was removed, so TCP carries what begins from now on");
  // Those of a removed device are an error for ever.
  for (const int fd : {channel_->fd, device_.context()->async_fd, device_.end_fd()})
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  for (fabric::Peer number = 0; number < peers_.size(); ++number) {
    if (peers_[number] == nullptr || peers_[number]->lost) continue;
    if (peers_[number]->meeting == Meeting::open) broken_.push_back(number);
    if (peers_[number]->meeting != Meeting::open) go_without(number);
  }
}

// Its end of the connection is gone, and nobody reads our memory from now on. Reads that are under way still write: they end
// before their buffers are given back, or with the connection where the device has failed.
void Endpoint::on_peer_lost(fabric::Peer number) {
  Peer& gone = peer(number);
  gone.lost = true;
  if (gone.pair != nullptr && !gone.pair->break_off()) end_pair(number);
  for (const auto& [id, offer] : std::exchange(gone.offers, {})) outcomes_.sent(offer.context, false);
  gone.offered_bytes = 0;
  for (const Read& read : std::exchange(gone.waiting, {})) fail(read);
  std::erase_if(announced_, [&](const auto& each) { return each.second.peer == number; });
  if (gone.known) outcomes_.lost(number);
}

}  // namespace offpath::fabric::rdma
