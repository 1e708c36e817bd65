// SPDX-License-Identifier: BSD-3-Clause
#include "collective_case.hpp"

#include <algorithm>
#include <cstring>

namespace offpath::testing {

bool Buffer::untouched_but(uint64_t from, uint64_t to) const {
  std::vector<uint8_t> copy = memory_;
  for (uint64_t at = from; at < to; ++at) copy[place(at)] = kUntouched;
  return std::all_of(copy.begin(), copy.end(), [](uint8_t byte) { return byte == kUntouched; });
}

Case::Case(const Process& process, offpath_collective_kind_t kind, uint64_t bytes, uint64_t seed,
           offpath_algorithm_t algorithm)
    : process_(process), seed_(seed) {
  c_.struct_bytes = sizeof(c_);
  c_.kind = kind;
  c_.algorithm = algorithm;
  const bool rooted = kind == OFFPATH_BCAST || kind == OFFPATH_REDUCE;
  if (rooted) c_.root = static_cast<uint32_t>(seed % process.size);
  if (kind == OFFPATH_EXCHANGE) exchange(bytes);
  if (kind == OFFPATH_BCAST) bcast(bytes);
  if (kind == OFFPATH_ALLGATHER) allgather(bytes);
  if (kind >= OFFPATH_REDUCE) reduce(bytes);
}

uint64_t Case::number(uint64_t a, uint64_t b, uint64_t c) const {
  uint64_t x =
      seed_ * 0x9E3779B97F4A7C15ULL + a * 0xBF58476D1CE4E5B9ULL + b * 0x94D049BB133111EBULL + c * 0x2545F491ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  return (x ^ (x >> 27)) >> 5;
}

std::vector<uint8_t> Case::bytes_of(uint32_t from, uint32_t to, uint32_t tag, uint64_t length) const {
  std::vector<uint8_t> out(length);
  const uint64_t start = number(from, to, tag);
  for (uint64_t i = 0; i < length; ++i) out[i] = static_cast<uint8_t>(start + i * 7 + i / 251);
  return out;
}

void Case::send(std::vector<uint8_t> data, bool is_strided, uint32_t peer, uint32_t tag) {
  Expected& sent = sent_.emplace_back(Expected{Buffer(data.size(), is_strided), std::move(data)});
  for (size_t i = 0; i < sent.data.size(); ++i) sent.buffer[i] = sent.data[i];
  send_blocks_.push_back(sent.buffer.block(peer, tag));
}

void Case::receive(std::vector<uint8_t> data, uint64_t capacity, bool is_strided, uint32_t peer, uint32_t tag) {
  received_.push_back({Buffer(capacity, is_strided), std::move(data)});
  recv_blocks_.push_back(received_.back().buffer.block(peer, tag));
}

void Case::in_place(const std::vector<uint8_t>& before, std::vector<uint8_t> after, uint64_t receive_bytes) {
  Buffer buffer(before.size(), false);
  std::copy(before.begin(), before.end(), buffer.data());
  std::copy(before.begin() + static_cast<std::ptrdiff_t>(after.size()), before.end(), std::back_inserter(after));
  received_.push_back({std::move(buffer), std::move(after)});
  send_blocks_.push_back(received_.back().buffer.block());
  recv_blocks_.push_back(received_.back().buffer.block());
  recv_blocks_.back().bytes = receive_bytes;
}

// Up to two blocks between any two members, and some receive blocks that nobody fills.
void Case::exchange(uint64_t bytes) {
  const uint32_t rank = process_.rank;
  for (uint32_t i = 0; i < process_.size; ++i) {
    const uint32_t peer = (rank + i) % process_.size;
    for (uint32_t tag = 0; tag < number(rank, peer) % 3; ++tag) {
      const uint64_t length = number(rank, peer, 10 + tag) % (bytes + 1);
      send(bytes_of(rank, peer, tag, length), strided(2 * peer + tag), peer, tag);
    }
    for (uint32_t tag = 0; tag < number(peer, rank) % 3; ++tag) {
      const uint64_t length = number(peer, rank, 10 + tag) % (bytes + 1);
      receive(bytes_of(peer, rank, tag, length), length + number(peer, rank, tag) % 5, strided(2 * peer + tag + 50),
              peer, tag);
    }
    if (number(peer, rank, 9) % 4 == 0) receive({}, 5, false, peer, 77);
  }
  std::reverse(send_blocks_.begin(), send_blocks_.end());
}

void Case::bcast(uint64_t bytes) {
  std::vector<uint8_t> data = bytes_of(c_.root, 0, 0, bytes);
  if (process_.rank == c_.root) return send(std::move(data), strided(0));
  receive(std::move(data), bytes, strided(0));
}

void Case::allgather(uint64_t bytes) {
  const auto length_of = [&](uint32_t rank) { return number(rank, 1) % (bytes + 1); };
  const bool is_in_place = number(3, process_.rank) % 3 == 0;
  if (!is_in_place) send(bytes_of(process_.rank, 0, 0, length_of(process_.rank)), strided(1));
  for (uint32_t rank = 0; rank < process_.size; ++rank) {
    receive(bytes_of(rank, 0, 0, length_of(rank)), length_of(rank), strided(rank + 2));
  }
  if (!is_in_place) return;
  Expected& own = received_[process_.rank];
  for (size_t i = 0; i < own.data.size(); ++i) own.buffer[i] = own.data[i];
  send_blocks_.push_back(own.buffer.block());
}

std::vector<uint8_t> Case::sum_of(uint32_t first, uint32_t last, uint64_t bytes) const {
  std::vector<uint32_t> sums(bytes / 4, 0);
  for (uint32_t rank = first; rank < last; ++rank) {
    const auto start = static_cast<uint32_t>(number(rank, 5));
    for (uint32_t i = 0; i < sums.size(); ++i) sums[i] += start + i * (rank + 1);
  }
  std::vector<uint8_t> out(bytes);
  if (bytes > 0) memcpy(out.data(), sums.data(), bytes);
  return out;
}

void Case::reduce(uint64_t bytes) {
  bytes = (bytes + 3) / 4 * 4;
  c_.op = OFFPATH_OP_SUM;
  c_.element = OFFPATH_ELEMENT_U32;
  const uint32_t rank = process_.rank;
  uint64_t receive_bytes = bytes;
  uint64_t begin = 0;  // of what is received, in the whole
  uint32_t first = 0, last = process_.size;
  if (c_.kind == OFFPATH_SCAN) last = rank + 1;
  if (c_.kind == OFFPATH_EXSCAN) last = rank;
  if (c_.kind == OFFPATH_REDUCE_SCATTER) {
    bytes = 0;
    for (uint32_t member = 0; member < process_.size; ++member) {
      counts_.push_back(number(member, 6) % (receive_bytes / 4 + 1) * 4);
      if (member < rank) begin += counts_.back();
      bytes += counts_.back();
    }
    receive_bytes = counts_[rank];
    c_.counts_bytes = counts_.data();
  }
  const std::vector<uint8_t> mine = sum_of(rank, rank + 1, bytes);
  if (c_.kind == OFFPATH_REDUCE && rank != c_.root) return send(mine, false);
  const std::vector<uint8_t> whole = sum_of(first, last, bytes);
  const auto from = whole.begin() + static_cast<std::ptrdiff_t>(begin);
  std::vector<uint8_t> result(from, from + static_cast<std::ptrdiff_t>(receive_bytes));
  const bool not_touched = c_.kind == OFFPATH_EXSCAN && rank == 0;
  if (not_touched) result.clear();
  if (number(7, rank) % 3 == 0) return in_place(mine, std::move(result), receive_bytes);
  send(mine, false);
  receive(std::move(result), receive_bytes, false);
}

void Case::post(offpath_team_t* team) {
  c_.send = send_blocks_.data();
  c_.send_count = static_cast<uint32_t>(send_blocks_.size());
  c_.recv = recv_blocks_.data();
  c_.recv_count = static_cast<uint32_t>(recv_blocks_.size());
  c_.layouts = &Buffer::kLayout;
  c_.layouts_count = 1;
  REQUIRE_STATUS(offpath_collective(team, &c_, &op_), OFFPATH_OK);
  // All descriptions were copied: ours again.
  std::fill(send_blocks_.begin(), send_blocks_.end(), offpath_block_t{});
  std::fill(recv_blocks_.begin(), recv_blocks_.end(), offpath_block_t{});
  std::fill(counts_.begin(), counts_.end(), UINT64_MAX);
}

void Case::finish() {
  const std::string what = "kind " + std::to_string(c_.kind) + ", algorithm " + std::to_string(c_.algorithm) +
                           ", seed " + std::to_string(seed_) + ", rank " + std::to_string(process_.rank) + ": ";
  const offpath_status_t status = offpath_op_wait(op_, kLongNs);
  if (status != OFFPATH_OK) {
    char text[200];
    offpath_op_describe(op_, text, sizeof(text));
    fail_process(__FILE__, __LINE__, what + text + ": " + name_of(status));
  }
  for (auto* side : {&sent_, &received_}) {
    for (Expected& block : *side) {
      for (size_t i = 0; i < block.data.size(); ++i) {
        if (block.buffer[i] == block.data[i]) continue;
        fail_process(__FILE__, __LINE__,
                     what + (side == &sent_ ? "sent" : "received") + " block " + std::to_string(&block - side->data()) +
                         " of " + std::to_string(block.buffer.bytes()) + " bytes is wrong at " + std::to_string(i));
      }
      if (!block.buffer.untouched_but(0, block.data.size())) {
        fail_process(__FILE__, __LINE__, what + "wrote where nothing belongs");
      }
    }
  }
  offpath_op_free(op_);
}

}  // namespace offpath::testing
