// SPDX-License-Identifier: BSD-3-Clause
#include "engine/coding/compression.hpp"

#include "base/clock.hpp"

#include <bit>

namespace offpath::engine {

namespace {
// A sample takes some 50 us; these take 13 ms at 10 Gbit/s.
constexpr uint64_t kBytesPerSample = 16 << 20;
constexpr double kFreshOfDecoding = 0.25;  // weight of what is new

}  // namespace

Compression::Compression(codecs::Chooser::Clock now_ns, Coder* its_coder, const fabric::Fabric& fabric)
    : clock_(now_ns ? std::move(now_ns) : [] { return base::clock_ns(); }),
      fabric_(fabric),
      own_coder_(its_coder == nullptr ? make_coder() : nullptr),
      coder(its_coder == nullptr ? *own_coder_ : *its_coder),
      chooser(clock_) {}

namespace {

// What the numbers are that a member has itself. What is reduced is only touched where that is wished.
codecs::Elements numbers_in(const graph::Graph& graph, const codecs::Wish& wish) {
  if (graph.reduction.op != OFFPATH_OP_NONE && !wish.reductions) return codecs::Elements::unknown;
  switch (graph.reduction.element) {
    case OFFPATH_ELEMENT_F32:
    case OFFPATH_ELEMENT_C32:
      return codecs::Elements::float32;
    case OFFPATH_ELEMENT_F64:
    case OFFPATH_ELEMENT_C64:
      return codecs::Elements::float64;
    default:
      return codecs::Elements::unknown;
  }
}

bool is_whole(uint64_t bytes, codecs::Elements elements) {
  return bytes % std::max<size_t>(bytes_of(elements), 1) == 0;
}

}  // namespace

// What a member passes on stays as it came, so that nothing is lost twice.
Compression::Plan Compression::plan(const codecs::Wish& wish, const graph::Graph& graph, const graph::Export& block,
                                    uint64_t bytes, uint64_t team, uint32_t readable) {
  const bool own = block.after == graph::kNoStep && block.place.layout != graph::kScratch;
  const codecs::Elements numbers = own ? numbers_in(graph, wish) : codecs::Elements::unknown;
  const bool whole = is_whole(block.place.offset, numbers);
  return plan(wish, whole ? numbers : codecs::Elements::unknown, bytes, team, readable);
}

Compression::Plan Compression::plan(const codecs::Wish& wish, const graph::Graph& graph,
                                    const graph::Multicast& multicast, uint64_t team, uint32_t readable) {
  const codecs::Elements numbers = numbers_in(graph, wish);
  uint64_t bytes = 0;
  bool whole = true;
  for (const auto& piece : multicast.parts[multicast.own]) {
    bytes += piece.bytes;
    whole = whole && is_whole(piece.place.offset, numbers) && is_whole(piece.bytes, numbers);
  }
  return plan(wish, whole ? numbers : codecs::Elements::unknown, bytes, team, readable);
}

Compression::Plan Compression::plan(const codecs::Wish& wish, codecs::Elements elements, uint64_t bytes, uint64_t team,
                                    uint32_t readable) {
  const auto can_read = [&](const codecs::Method& method) { return method && (readable & bit_of(method.codec)) != 0; };
  if (wish.is_lossy()) {
    const codecs::Method method = wish.for_numbers(elements);
    if (elements != codecs::Elements::unknown && can_read(method)) return {method};
  }
  if (wish.samples && bytes >= codecs::Chooser::kLeastBlockBytes) {
    const bool now = unsampled_ >= kBytesPerSample;
    unsampled_ = now ? bytes : unsampled_ + bytes;
    if (now) return {.samples = true};
  }
  const codecs::Wish lossless = wish.lossless();
  if (!lossless.decides_itself) return can_read(lossless.method) ? Plan{lossless.method} : Plan();
  if (bytes < codecs::Chooser::kLeastBlockBytes || readable == 0) return {};
  const auto size = static_cast<uint64_t>(std::bit_width(bytes));  // other lengths are other things, mostly
  return {.automatic = true, .kind = team + size};
}

CodedChunk* Compression::take() {
  if (free_.empty()) {
    all_.push_back(std::make_unique<CodedChunk>());
    return all_.back().get();
  }
  CodedChunk* chunk = free_.back();
  free_.pop_back();
  return chunk;
}

void Compression::begin(uint64_t transfer, fabric::Peer peer, const Plan& plan) {
  if (!plan.may_code()) return;
  if (open_.empty()) since_ns_ = clock_();
  open_[transfer] = {peer, {}};
  ++busy_[peer];
  if (plan.automatic) chooser.begin(plan.kind);
}

codecs::Path Compression::path_to(fabric::Peer peer) {
  codecs::Link& link = links_[peer];
  link.look(clock_(), fabric_.backlog(peer));
  return link.path(static_cast<uint32_t>(busy_.size()));
}

codecs::Chooser::Decision Compression::decide(fabric::Peer peer, const Plan& plan, uint64_t bytes, uint64_t rest,
                                              uint32_t readable) {
  return chooser.decide(plan.kind, bytes, rest, path_to(peer), readable);
}

void Compression::note_left(uint64_t transfer, fabric::Peer peer, uint64_t bytes, uint64_t wire_bytes,
                            codecs::CodecId codec) {
  const auto link = links_.find(peer);
  if (link == links_.end()) return;  // nobody asks
  link->second.left(clock_(), fabric_.backlog(peer), bytes, wire_bytes);
  const auto open = open_.find(transfer);
  if (open != open_.end() && codec != codecs::CodecId::none) open->second.coded_bytes[codec] += bytes;
}

void Compression::end(uint64_t transfer, std::optional<uint64_t> decode_ns) {
  const auto found = open_.extract(transfer);
  if (found.empty()) return;
  const fabric::Peer peer = found.mapped().peer;
  if (const auto busy = busy_.find(peer); --busy->second == 0) busy_.erase(busy);
  const uint64_t now = clock_();
  chooser.earn(static_cast<double>(now - std::exchange(since_ns_, now)));
  const auto link = links_.find(peer);
  if (!decode_ns || link == links_.end()) return;
  const uint64_t waiting = fabric_.backlog(peer);
  waiting == 0 ? link->second.arrived(now) : link->second.look(now, waiting);
  uint64_t all = 0;
  for (const auto& [codec, bytes] : found.mapped().coded_bytes) all += bytes;
  for (const auto& [codec, bytes] : found.mapped().coded_bytes) {
    link->second.decoded(codec, all, *decode_ns);
  }
}

double Compression::saved_ns(const CodedChunk& job, uint64_t wire_bytes) const {
  const codecs::Path& path = job.path;
  const auto index = static_cast<size_t>(job.method.codec);
  if (!path.known || index >= path.decode_ns.size()) return 0;
  const auto bytes = static_cast<double>(job.in.size());
  const double coding = static_cast<double>(clock_() - job.since_ns) * path.in_turn;
  const double exposed = std::max(0.0, coding - path.waiting_ns);
  const double link = exposed + path.link_ns * static_cast<double>(wire_bytes);
  return path.link_ns * bytes - std::max(link, path.decode_ns[index] * bytes);
}

void Compression::note_decoded(const CodedChunk& decoded) {
  const auto index = static_cast<size_t>(decoded.method.codec);
  if (index >= decode_ns_.size() || decoded.out.empty() || !coder.prompt()) return;
  const double seen = static_cast<double>(clock_() - decoded.since_ns) / static_cast<double>(decoded.out.size());
  double& known = decode_ns_[index];
  // Somebody else may have had the core for a while.
  known = known == 0 ? seen : known + kFreshOfDecoding * (std::min(seen, 2 * known) - known);
}

void Compression::try_decoding(const CodedChunk& coded) {
  const auto index = static_cast<size_t>(coded.method.codec);
  if (index >= decode_ns_.size() || decode_ns_[index] > 0 || !coder.prompt()) return;
  CodedChunk* const trial = take();
  trial->method = {coded.method.codec, coded.method.width, 0};
  trial->in = codecs::Bytes(coded.out).first(coded.bytes);
  trial->out = trial->plain_room(coded.in.size());
  trial->since_ns = clock_();
  if (coder.decode(*trial, {}).ok()) note_decoded(*trial);
  give_back(trial);
}

}  // namespace offpath::engine
