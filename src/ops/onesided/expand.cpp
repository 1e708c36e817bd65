// SPDX-License-Identifier: BSD-3-Clause
#include "ops/onesided/onesided.hpp"

#include <algorithm>
#include <utility>

namespace offpath::ops::onesided {
namespace {

using base::Status;
using graph::Graph;
using graph::kNoStep;
using graph::Place;
using graph::place_of;

struct Pieces {
  Pieces(uint64_t bytes, const Tuning& tuning)
      : total(bytes),
        length(std::max(tuning.piece_bytes, (bytes / tuning.pieces_max / 64 + 1) * 64)),
        count((bytes - 1) / length + 1) {}
  uint64_t begin(uint64_t piece) const { return piece * length; }
  uint64_t bytes(uint64_t piece) const { return std::min(length, total - begin(piece)); }
  uint64_t total, length, count;
};

Status check_block(const memory::Block& block, uint64_t bytes, const std::vector<graph::Layout>& layouts) {
  if (block.layout > layouts.size()) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "a block names a layout that was not given. Name one of the %zu layouts",
                         layouts.size());
  }
  if (block.layout != 0 || block.address + bytes >= bytes) return {};
  return Status::error(OFFPATH_ERR_ARGUMENT, "a block ends beyond the last address. Check its address and length");
}

void pull_and_reduce(const Wanted& wanted, uint32_t origin, Place window, const Tuning& tuning, Graph& graph) {
  struct Buffers {
    uint64_t data = 0, old = 0;  // in scratch
    uint32_t reduced = kNoStep;  // by the piece that had them before
    uint32_t old_export = kNoStep;
  };
  const Pieces pieces(wanted.bytes, tuning);
  const bool fetched = fetches(wanted.kind);
  std::vector<Buffers> buffers(std::min<uint64_t>(tuning.under_way, pieces.count));
  uint32_t last = kNoStep;  // one after the other, as the journal counts
  for (Buffers& buffer : buffers) {
    buffer.data = graph.reserve_scratch(pieces.length);
    if (fetched) buffer.old = graph.reserve_scratch(pieces.length);
  }
  for (uint32_t piece = 0; piece < pieces.count; ++piece) {
    Buffers& buffer = buffers[piece % buffers.size()];
    const uint64_t bytes = pieces.bytes(piece);
    const Place here = window.plus(pieces.begin(piece));
    const Place data = graph::scratch_place(buffer.data);
    const uint32_t pull = graph.pull(origin, piece, data, bytes);
    graph.order(buffer.reduced, pull);
    const uint32_t reduce = graph.reduce(here, data, here, bytes);
    graph.order(pull, reduce);
    graph.order(std::exchange(last, reduce), reduce);
    if (fetched) {
      const uint32_t copy = graph.copy(here, graph::scratch_place(buffer.old), bytes);
      if (buffer.old_export != kNoStep) graph.order_after_taken(buffer.old_export, copy);
      buffer.old_export = graph.offer(origin, piece, graph::scratch_place(buffer.old), bytes, copy);
      graph.order(copy, reduce);
    }
    buffer.reduced = reduce;
  }
}

}  // namespace

base::Result<Remote> read(std::span<const uint8_t> record, uint64_t window, uint32_t team_size) {
  auto origin = remote::decode_origin(record);
  if (!origin.ok()) return origin.status();
  auto decoded = remote::decode(origin->body, remote::Data::may_follow);
  if (!decoded.ok()) return decoded.status();
  if (decoded->wanted.window != window) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "a one-sided operation on window %llu is about window %llu",
                         static_cast<unsigned long long>(window),
                         static_cast<unsigned long long>(decoded->wanted.window));
  }
  const bool has_data = !decoded->data.empty();
  Remote remote{std::move(origin.value()), std::move(decoded->wanted), has_data};
  if (const Status status = check(remote, team_size); !status.ok()) return status;
  return remote;
}

Status check(const Remote& remote, uint32_t team_size) {
  if (remote.target >= team_size) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "the target is member %u of a team of %u. Name one of its members",
                         remote.target, team_size);
  }
  Status status;
  for (const graph::Layout& layout : remote.layouts) {
    if (status.ok()) status = memory::check_layout(layout);
  }
  const bool sent_from_client = sends(remote.wanted) && !remote.has_data;
  if (status.ok() && sent_from_client) status = check_block(remote.send, data_bytes(remote.wanted), remote.layouts);
  if (status.ok() && fetches(remote.wanted.kind))
    status = check_block(remote.result, remote.wanted.bytes, remote.layouts);
  if (status.ok() && signals(remote.wanted.kind))
    status = check_block(remote.result, remote::kSignalBytes, remote.layouts);
  return status;
}

graph::Request make_request(Remote remote, const Tuning& tuning) {
  const Wanted& wanted = remote.wanted;
  const Place result = place_of(remote.result);
  graph::Request request;
  request.target = remote.target;
  request.body = std::move(remote.body);
  Graph& graph = request.graph;
  graph.layouts = std::move(remote.layouts);
  graph.reduction = wanted.reduction;
  if (is_short(wanted)) {
    if (!remote.has_data) {
      request.data = place_of(remote.send);
      request.data_bytes = data_bytes(wanted);
    }
    request.reply = result;
    request.reply_bytes = fetches(wanted.kind) ? wanted.bytes : 0;
  } else if (wanted.kind == OFFPATH_PUT) {
    graph.offer(remote.target, 0, place_of(remote.send), wanted.bytes);
  } else if (signals(wanted.kind)) {
    graph.offer(remote.target, 0, place_of(remote.send), data_bytes(wanted));
    graph.offer(remote.target, 1, result, remote::kSignalBytes);
  } else if (!sends(wanted)) {
    graph.pull(remote.target, 0, result, wanted.bytes);
  } else {
    const Pieces pieces(wanted.bytes, tuning);
    for (uint32_t piece = 0; piece < pieces.count; ++piece) {
      const uint64_t at = pieces.begin(piece);
      graph.offer(remote.target, piece, place_of(remote.send).plus(at), pieces.bytes(piece));
      if (fetches(wanted.kind)) graph.pull(remote.target, piece, result.plus(at), pieces.bytes(piece));
    }
  }
  return request;
}

Graph expand_target(const Wanted& wanted, uint32_t origin, uint64_t address, const Tuning& tuning) {
  Graph graph;
  graph.reduction = wanted.reduction;
  Place window = graph::client_place(address);
  if (!wanted.contiguous) {
    window.layout = 0;
    graph.layouts.push_back(wanted.layout);
  }
  if (wanted.kind == OFFPATH_PUT) {
    graph.pull(origin, 0, window, wanted.bytes);
  } else if (signals(wanted.kind)) {
    const uint64_t bytes = data_bytes(wanted);
    const uint32_t data = graph.pull(origin, 0, window, bytes);
    graph.order(data, graph.pull(origin, 1, window.plus(bytes), remote::kSignalBytes));
  } else if (!sends(wanted)) {
    graph.offer(origin, 0, window, wanted.bytes);
  } else {
    pull_and_reduce(wanted, origin, window, tuning, graph);
  }
  return graph;
}

}  // namespace offpath::ops::onesided
