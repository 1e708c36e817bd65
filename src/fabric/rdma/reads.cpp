// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"
#include "fabric/rdma/endpoint.hpp"

#include <algorithm>
#include <utility>

namespace offpath::fabric::rdma {

void Endpoint::on_offer(const Word& word) {
  const Announcement what{word.to, word.id, word.from, word.key, word.bytes};
  if (peers_[word.to]->meeting != Meeting::open) return broken_.push_back(word.to);
  if (receiver_ == nullptr) return done_with(what);
  const Announced handle = kOurs | ++last_id_;
  announced_.emplace(handle, what);
  receiver_->on_announced(word.rest, word.bytes, handle);
}

void Endpoint::on_taken(const Word& word) {
  Peer& from = *peers_[word.to];
  const auto found = from.offers.find(word.id);
  if (found == from.offers.end()) return;
  outcomes_.sent(found->second.context, true);
  from.offered_bytes -= found->second.bytes;
  from.offers.erase(found);
}

void Endpoint::done_with(const Announcement& what) {
  Word word;
  word.kind = Word::Kind::taken;
  word.id = what.id;
  say(what.peer, word);
}

void Endpoint::drop(Announced handle) {
  if ((handle & kOurs) == 0) return tcp_->drop(handle);
  const auto found = announced_.extract(handle);
  if (!found.empty()) done_with(found.mapped());
}

void Endpoint::fetch(Announced handle, void* buffer, size_t bytes, uint64_t context) {
  if ((handle & kOurs) == 0) return tcp_->fetch(handle, buffer, bytes, context);
  const auto found = announced_.extract(handle);
  if (found.empty() || found.mapped().bytes != bytes) {
    if (!found.empty()) done_with(found.mapped());
    return outcomes_.fetched(context, false);
  }
  const Announcement& what = found.mapped();
  peers_[what.peer]->waiting.push_back(
      {what, static_cast<uint8_t*>(buffer), context, device_.registered(buffer, bytes, IBV_ACCESS_LOCAL_WRITE)});
  eager_.insert(what.peer);
  may_start_ = true;
}

bool Endpoint::start_reads() {
  bool any = false;
  may_start_ = false;
  for (auto next = eager_.begin(); next != eager_.end();) {
    Peer& from = *peers_[*next];
    const auto is_room = [&] { return from.reading < Pair::kMostReads && reads_.size() < most_reads_; };
    while (!from.waiting.empty() && is_room() && start(from, from.waiting.front())) {
      from.waiting.pop_front();
      any = true;
    }
    next = from.waiting.empty() ? eager_.erase(next) : std::next(next);
  }
  return any;
}

// False: not now. Memory that the card may not write to is filled part by part from memory of ours that it may.
bool Endpoint::start(Peer& from, Read& read) {
  const bool direct = read.place != nullptr;
  if (!direct && bounce_busy_) return false;
  const size_t most = direct ? from.pair->most_bytes() : kBounceBytes;
  read.asked = static_cast<uint32_t>(std::min<size_t>(read.what.bytes - read.done, most));
  void* const to = direct ? read.buffer + read.done : bounce_.data();
  const ibv_mr& memory = direct ? *read.place : *bounce_memory_;
  const uint64_t number = ++last_id_;
  if (!from.pair->read(number, to, memory, read.asked, read.what.from + read.done, read.what.key)) {
    read.asked = 0;
    broken_.push_back(read.what.peer);
    return false;
  }
  bounce_busy_ |= !direct;
  ++from.reading;
  reads_.emplace(number, std::move(read));
  return true;
}

bool Endpoint::poll() {
  ibv_cq* woken = nullptr;
  void* unused = nullptr;
  while (armed_ && ibv_get_cq_event(channel_.get(), &woken, &unused) == 0) {
    ibv_ack_cq_events(woken, 1);
    armed_ = false;
  }
  ibv_wc done[32];
  bool any = false;
  for (int count = 1; count > 0;) {
    count = ibv_poll_cq(completions_.get(), 32, done);
    for (int i = 0; i < count; ++i) on_read(done[i].wr_id, done[i].status);
    any |= count > 0;
  }
  return any;
}

void Endpoint::on_read(uint64_t number, ibv_wc_status status) {
  const auto found = reads_.extract(number);
  if (found.empty()) return;
  Read read = std::move(found.mapped());
  Peer& from = *peers_[read.what.peer];
  --from.reading;
  may_start_ = true;
  if (read.what.id == kTrial) return on_trial(read.what.peer, status);
  const bool direct = read.place != nullptr;
  if (status != IBV_WC_SUCCESS || from.lost) {
    if (!from.lost && status != IBV_WC_WR_FLUSH_ERR) {  // the first; those behind it are flushed
      base::log_write(base::LogLevel::warn, "the RDMA connection with peer service %u broke (%s)", read.what.peer,
                      ibv_wc_status_str(status));
    }
    if (!from.lost) broken_.push_back(read.what.peer);
    return fail(read);
  }
  if (!direct) std::copy_n(bounce_.data(), read.asked, read.buffer + read.done);
  if (!direct) bounce_busy_ = false;
  (direct ? counts_.read_bytes : counts_.bounced_bytes) += read.asked;
  read.done += std::exchange(read.asked, 0);
  if (read.done < read.what.bytes) {
    from.waiting.push_front(std::move(read));
    eager_.insert(from.waiting.front().what.peer);
    return;
  }
  done_with(read.what);
  outcomes_.fetched(read.context, true);
}

void Endpoint::fail(const Read& read) {
  if (read.place == nullptr && read.asked > 0) bounce_busy_ = false;
  if (read.what.id != kTrial) outcomes_.fetched(read.context, false);
}

}  // namespace offpath::fabric::rdma
