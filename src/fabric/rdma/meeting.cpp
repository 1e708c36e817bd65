// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/rdma/endpoint.hpp"

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
  if (from.pair == nullptr || !from.pair->join(word.end)) {
    from.meeting = Meeting::without;
    return;
  }
  Word ready;
  ready.kind = Word::Kind::ready;
  say(found.value(), ready);
}

// Whoever says so has joined; so have we, as that was said to an end that it knows.
void Endpoint::on_ready(const Word& word) {
  Peer& from = *peers_[word.to];
  if (from.pair != nullptr && from.pair->joined()) from.meeting = Meeting::open;
}

// Its end of the connection is gone, and nobody reads our memory from now on. Reads that are under way still write: they end
// before their buffers are given back.
void Endpoint::on_peer_lost(fabric::Peer number) {
  Peer& gone = peer(number);
  gone.lost = true;
  if (gone.pair != nullptr) gone.pair->break_off();
  for (const auto& [id, offer] : std::exchange(gone.offers, {})) outcomes_.sent(offer.context, false);
  gone.offered_bytes = 0;
  for (const Read& read : std::exchange(gone.waiting, {})) outcomes_.fetched(read.context, false);
  std::erase_if(announced_, [&](const auto& each) { return each.second.peer == number; });
  if (gone.known) outcomes_.lost(number);
}

}  // namespace offpath::fabric::rdma
