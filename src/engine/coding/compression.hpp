// SPDX-License-Identifier: BSD-3-Clause
// Compression: what a worker has to code chunks with: buffers, who does it, and what it has found out about when it pays.
// docs/design/0021-compression.md. On the worker's thread; fabric and coder outlive it.
#pragma once

#include "engine/coding/coder.hpp"
#include "fabric/fabric.hpp"
#include "graph/graph.hpp"
#include "kernels/codecs/choice.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace offpath::engine {

// A chunk that is being coded, with room for it as it is (plain) and for what came without a buffer of ours (kept).
// They stay as long as they are needed once.
struct CodedChunk : CodingJob {
  std::vector<uint8_t> plain;
  std::vector<uint8_t> kept;
  uint64_t since_ns = 0;
  codecs::Path path = {};  // when coding began
  codecs::Room plain_room(size_t length) {
    if (plain.size() < length) plain.resize(length);
    return codecs::Room(plain).first(length);
  }
};

// What could not be compressed is followed by what is not tried: ever more of it, as it may be of another kind some day.
class Tries {
 public:
  // Whether the next one goes as it is.
  bool pass() { return left_ > 0 && left_-- > 0; }
  void note(bool shorter) {
    left_ = shorter ? 0 : (uint32_t{1} << std::min(misses_, kMostMisses)) - 1;
    misses_ = shorter ? 0 : misses_ + 1;
  }

 private:
  static constexpr uint32_t kMostMisses = 5;
  uint32_t left_ = 0;
  uint32_t misses_ = 0;
};

class Compression {
 public:
  // `now_ns`: null: the system's clock; `coder`: null: the codecs, here.
  Compression(codecs::Chooser::Clock now_ns, Coder* coder, const fabric::Fabric& fabric);

  uint64_t now_ns() const { return clock_(); }
  CodedChunk* take();
  void give_back(CodedChunk* chunk) { free_.push_back(chunk); }

  // How the chunks of a block are coded. `automatic`: decide() says so, chunk by chunk.
  struct Plan {
    codecs::Method method = {};
    bool automatic = false;
    bool samples = false;  // the first chunk; nothing is coded
    uint64_t kind = 0;     // of block: what those of one kind are made of is alike
    bool may_code() const { return method || automatic; }
  };
  Plan plan(const codecs::Wish& wish, const graph::Graph& graph, const graph::Export& block, uint64_t bytes,
            uint64_t team, uint32_t readable);
  // Of the own part of a multicast.
  Plan plan(const codecs::Wish& wish, const graph::Graph& graph, const graph::Multicast& multicast, uint64_t team,
            uint32_t readable);

  // A block of which chunks may be coded: begin, until its receiver has all or wants it no more. `decode_ns`: what that has spent
  // on decoding it; nothing: it does not have it.
  void begin(uint64_t transfer, fabric::Peer peer, const Plan& plan);
  codecs::Chooser::Decision decide(fabric::Peer peer, const Plan& plan, uint64_t bytes, uint64_t rest,
                                   uint32_t readable);
  // Tries methods on it, and decides again. `path`: to whom it leaves, at the moment when it is called.
  template <typename PathNow>
  codecs::Chooser::Decision look(const Plan& plan, codecs::Bytes chunk, uint64_t rest, uint32_t readable, PathNow path);
  codecs::Path path_to(fabric::Peer peer);
  // Of any block: so many bytes leave as so many.
  void note_left(uint64_t transfer, fabric::Peer peer, uint64_t bytes, uint64_t wire_bytes, codecs::CodecId codec);
  void end(uint64_t transfer, std::optional<uint64_t> decode_ns);

  // How much sooner a chunk was there that began to be coded at `job`, and leaves as so many bytes: as `auto` reckons. 0: the
  // link is not known yet.
  double saved_ns(const CodedChunk& job, uint64_t wire_bytes) const;

  // What decoding a byte takes here.
  void note_decoded(const CodedChunk& decoded);
  const codecs::PerCodec& decode_ns() const { return decode_ns_; }
  // A codec of which that is not known decodes what it has just coded.
  void try_decoding(const CodedChunk& coded);

 private:
  struct Open {
    fabric::Peer peer = 0;
    std::map<codecs::CodecId, uint64_t> coded_bytes;  // as they were before
  };
  Plan plan(const codecs::Wish& wish, codecs::Elements elements, uint64_t bytes, uint64_t team, uint32_t readable);

  const codecs::Chooser::Clock clock_;
  const fabric::Fabric& fabric_;
  const std::unique_ptr<Coder> own_coder_;
  std::vector<std::unique_ptr<CodedChunk>> all_;
  std::vector<CodedChunk*> free_;
  std::unordered_map<fabric::Peer, codecs::Link> links_;  // to whom coded chunks have left
  std::unordered_map<fabric::Peer, uint32_t> busy_;       // and do now: so many
  std::unordered_map<uint64_t, Open> open_;               // by transfer
  uint64_t since_ns_ = 0;                                 // they have been under way, or the last of them came
  uint64_t unsampled_ = UINT64_MAX;                       // bytes of blocks since the last sample
  codecs::PerCodec decode_ns_{};

 public:
  Coder& coder;
  codecs::Chooser chooser;
};

template <typename PathNow>
codecs::Chooser::Decision Compression::look(const Plan& plan, codecs::Bytes chunk, uint64_t rest, uint32_t readable,
                                            PathNow path) {
  const codecs::Path before = path();
  const uint64_t begin = clock_();
  chooser.look(plan.kind, chunk);
  const auto took = static_cast<double>(clock_() - begin);
  const codecs::Path after = path();
  if (!after.waits) chooser.pay(std::max(0.0, took - before.waiting_ns));
  return chooser.decide(plan.kind, chunk.size(), rest, after, readable);
}

}  // namespace offpath::engine
