// SPDX-License-Identifier: BSD-3-Clause
// Compression: what a worker has to code chunks with: buffers, who does it, and what it has found out about when it pays.
// docs/design/0021-compression.md. Internal to engine/.
#pragma once

#include "engine/coder.hpp"
#include "graph/graph.hpp"
#include "kernels/codecs/choice.hpp"

#include <map>
#include <vector>

namespace offpath::engine {

struct Config;

// A chunk that is being coded, with room for it as it is (plain) and for what came without a buffer of ours (kept).
// They stay as long as they are needed once.
struct CodedChunk : CodingJob {
  std::vector<uint8_t> plain;
  std::vector<uint8_t> kept;
  uint64_t since_ns = 0;
  codecs::Room plain_room(size_t length) {
    if (plain.size() < length) plain.resize(length);
    return codecs::Room(plain).first(length);
  }
};

class Compression {
 public:
  explicit Compression(const Config& config);

  uint64_t now_ns() const { return clock_(); }
  CodedChunk* take();
  void give_back(CodedChunk* chunk) { free_.push_back(chunk); }

  // How the chunks of a block are coded. `automatic`: the chooser has said so, and is to know how it went.
  struct Plan {
    codecs::Advice advice = codecs::Advice::plain;
    codecs::Method method = {};
    bool automatic = false;
    bool samples = false;  // the first chunk; nothing is coded
  };
  Plan plan(const codecs::Wish& wish, const graph::Graph& graph, const graph::Export& block, uint64_t bytes,
            uint64_t team, uint32_t readable);

  // What leaves for other nodes, from a block's first chunk until its receiver has all: that is how fast the link is.
  void begin(uint64_t transfer);
  void note_sent(uint64_t transfer, uint64_t bytes, uint64_t wire_bytes);
  void end(uint64_t transfer);

 private:
  const codecs::Chooser::Clock clock_;
  const std::unique_ptr<Coder> own_coder_;
  std::vector<std::unique_ptr<CodedChunk>> all_;
  std::vector<CodedChunk*> free_;
  std::map<uint64_t, codecs::Chooser::Busy> open_;  // by transfer
  codecs::Chooser::Busy busy_;                      // of those that have ended
  uint64_t busy_since_ns_ = 0;
  uint64_t unsampled_ = UINT64_MAX;  // bytes of blocks since the last sample
  bool measures_ = false;            // how fast the link is; as soon as somebody wants to know

 public:
  Coder& coder;
  codecs::Chooser chooser;
};

}  // namespace offpath::engine
