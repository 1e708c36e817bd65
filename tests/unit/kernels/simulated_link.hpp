// SPDX-License-Identifier: BSD-3-Clause
// Blocks on their way over a link that is not there: one core that codes, a link that lets a burst through and then so much per
// second, one core that decodes. Chunks are coded, so their lengths are true; how long that takes is said.
#pragma once

#include "kernels/codecs/choice.hpp"

#include <algorithm>
#include <deque>
#include <map>

namespace offpath::testing {

struct World {
  double link_ns = 8;  // per byte
  double burst_bytes = 0;
  double slow = 1;           // the core that codes, against a usual one
  double slow_receiver = 1;  // the other one
  double pause_ns = 0;       // between blocks
};

class SimulatedLink {
 public:
  explicit SimulatedLink(const World& world) : world_(world), tokens_(world.burst_bytes) {}

  void push(double now, double bytes, double decode_ns) {
    double begin = std::max(now, free_);
    if (done_.size() >= kWindow) begin = std::max(begin, done_[done_.size() - kWindow]);
    tokens_ = std::min(world_.burst_bytes, tokens_ + (begin - tokens_at_) / world_.link_ns);
    const double at_once = std::min(bytes, tokens_);
    const double mid = begin + at_once * kPeakNs, end = mid + (bytes - at_once) * world_.link_ns;
    tokens_ -= at_once;
    tokens_at_ = free_ = end;
    parts_.push_back({begin, mid, at_once});
    parts_.push_back({mid, end, bytes - at_once});
    done_.push_back(std::max(end + kLatencyNs, done_.empty() ? 0 : done_.back()) + decode_ns);
  }
  uint64_t waiting(double now) {
    while (!parts_.empty() && parts_.front().end <= now) parts_.pop_front();
    double bytes = 0;
    for (const Part& part : parts_) {
      const double share = now <= part.begin ? 1 : (part.end - now) / (part.end - part.begin);
      bytes += share * part.bytes;
    }
    return static_cast<uint64_t>(bytes);
  }
  double all_done() const { return done_.back() + kLatencyNs; }

 private:
  static constexpr double kPeakNs = 0.05, kLatencyNs = 20'000;
  static constexpr size_t kWindow = 8;  // chunks that are sent before the first of them is taken
  struct Part {
    double begin, end, bytes;
  };
  const World world_;
  double free_ = 0, tokens_, tokens_at_ = 0;
  std::deque<Part> parts_;
  std::vector<double> done_;
};

// One worker that sends the same block again and again, by one method, as it is, or by its own choice.
class SimulatedSender {
 public:
  SimulatedSender(const World& world, std::vector<uint8_t> block)
      : world_(world), block_(std::move(block)), wire_(world) {}

  // ns that a block takes. `method`: none, or as it says; null: what the chooser says.
  double send(const codecs::Method* method) {
    const double begin = now_;
    uint64_t coded_bytes = 0;
    double decode_ns = 0;
    std::map<codecs::CodecId, uint64_t> by_codec;
    if (method == nullptr) chooser_.begin(kKind);
    for (uint64_t at = 0; at < block_.size();) {
      const bool grows = method == nullptr || *method;
      const uint64_t bytes =
          std::min<uint64_t>({block_.size() - at, kChunk, grows ? std::max<uint64_t>(at, 16 << 10) : kChunk});
      const codecs::Bytes chunk = codecs::Bytes(block_).subspan(at, bytes);
      codecs::Method taken = method == nullptr ? choose(chunk, block_.size() - at - bytes) : *method;
      uint64_t left = taken ? coded(taken, at, chunk) : 0;
      const double coding = taken ? encode_ns(taken) * static_cast<double>(bytes) : 0;
      now_ += coding + kSendNs * static_cast<double>(bytes);
      if (method == nullptr && taken) chooser_.note_chunk(kKind, taken, bytes, left, static_cast<uint64_t>(coding));
      const double decoding =
          left == 0 ? 0 : 0.3 * encode_ns(taken) / world_.slow * world_.slow_receiver * static_cast<double>(bytes);
      if (left > 0) coded_bytes += bytes, by_codec[taken.codec] += bytes;
      decode_ns += decoding;
      const uint64_t waited = wire_.waiting(now_);
      wire_.push(now_, static_cast<double>(left == 0 ? bytes : left), decoding);
      link_.left(time(), waited, bytes, left == 0 ? bytes : left);
      at += bytes;
    }
    coded_share = static_cast<double>(coded_bytes) / static_cast<double>(block_.size());
    now_ = wire_.all_done();
    link_.arrived(time());
    for (const auto& [codec, bytes] : by_codec) {
      link_.decoded(codec, coded_bytes, static_cast<uint64_t>(decode_ns));
    }
    const double took = now_ - begin;
    chooser_.earn(took);
    now_ += world_.pause_ns;
    return took;
  }
  double coded_share = 0;  // of the last block
  double link_ns() const { return link_.ns_per_byte(); }

 private:
  static constexpr uint64_t kChunk = 56 << 10, kKind = 1;
  static constexpr double kSendNs = 0.1;
  uint64_t time() const { return static_cast<uint64_t>(now_); }

  double encode_ns(const codecs::Method& method) const {
    const double usual = method.codec == codecs::CodecId::lz4 ? 0.45 : 1.3;
    return world_.slow * (usual + (method.width > 1 ? 0.15 : 0));
  }
  codecs::Method choose(codecs::Bytes chunk, uint64_t rest) {
    codecs::Link& link = link_;
    const auto look = [&] { link.look(time(), wire_.waiting(now_)); };
    look();
    auto decision = chooser_.decide(kKind, chunk.size(), rest, link.path(1), codecs::all_codecs());
    if (decision.advice == codecs::Chooser::Advice::look) {
      const double before = now_, waited = link.path(1).waiting_ns;
      chooser_.look(kKind, chunk);
      look();
      if (!link.path(1).waits) chooser_.pay(std::max(0.0, now_ - before - waited));
      decision = chooser_.decide(kKind, chunk.size(), rest, link.path(1), codecs::all_codecs());
    }
    return decision.method;
  }
  // As long as it is then; 0: no shorter. The same chunk gives the same each time.
  uint64_t coded(const codecs::Method& method, uint64_t at, codecs::Bytes chunk) {
    const auto [found, is_new] = lengths_.try_emplace({static_cast<int>(method.codec), method.width, at});
    if (!is_new) return found->second;
    room_.resize(chunk.size());
    return found->second = coding_.encode(method, chunk, codecs::Room(room_).first(chunk.size() - chunk.size() / 16));
  }

  const World world_;
  const std::vector<uint8_t> block_;
  double now_ = 1e6;
  SimulatedLink wire_;
  codecs::Coding coding_;
  std::vector<uint8_t> room_;
  std::map<std::tuple<int, int, uint64_t>, uint64_t> lengths_;
  codecs::Link link_;
  codecs::Chooser chooser_{[this] { return now_ += 2'000 * world_.slow, time(); }};
};

}  // namespace offpath::testing
