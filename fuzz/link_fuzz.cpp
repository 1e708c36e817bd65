// SPDX-License-Identifier: BSD-3-Clause
// What comes over the link between an agent and a service: any bytes are refused, or mean a message that encodes to the same
// bytes; entries lie inside; patches name nothing outside a segment.
#include "agent/patch.hpp"
#include "target.hpp"
#include "wire/link.hpp"

#include <algorithm>
#include <cstring>

using namespace offpath;

static void take_patches(std::span<const uint8_t> body) {
  [[maybe_unused]] const auto slot = agent::take_submission(body, [&](uint32_t offset, std::span<const uint8_t> bytes) {
    FUZZ_REQUIRE(offset >= session::kSlotsOffset && bytes.size() <= session::kSegmentBytes - offset);
    FUZZ_REQUIRE(bytes.data() >= body.data() && bytes.data() + bytes.size() <= body.data() + body.size());
  });
  agent::Word word;
  if (body.size() < sizeof(word)) return;
  memcpy(&word, body.data(), sizeof(word));
  if (agent::may_write(word)) FUZZ_REQUIRE(word.bytes <= session::kSegmentBytes - word.offset);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  const std::vector<uint8_t> exact(data, data + bytes);  // so that a sanitizer sees a read behind the end
  if (const auto message = wire::decode_link(exact); message.ok()) {
    uint8_t again[wire::kLinkMessageBytes];
    encode(message.value(), again);
    FUZZ_REQUIRE(bytes == sizeof(again) && std::equal(exact.begin(), exact.end(), again));
  }
  take_patches(exact);
  for (std::span<const uint8_t> rest(exact); true;) {
    const size_t before = rest.size();
    const auto entry = wire::take_link_entry(rest);
    if (!entry.ok() || !entry.value()) {
      FUZZ_REQUIRE(rest.size() == before);
      return 0;
    }
    FUZZ_REQUIRE(entry.value()->body.size() + rest.size() < before);
    take_patches(entry.value()->body);
  }
}

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  std::vector<std::vector<uint8_t>> out;
  for (const auto kind : {wire::LinkKind::get, wire::LinkKind::got, wire::LinkKind::put, wire::LinkKind::ended}) {
    out.emplace_back(wire::kLinkMessageBytes);
    wire::encode({kind, 1, 2, -3, 4, 5, 6}, std::span<uint8_t, wire::kLinkMessageBytes>(out.back()));
  }
  const agent::Submission head{3, 1};
  const agent::Piece piece{session::kArenaOffset, 8};
  std::vector<uint8_t> body(sizeof(head) + sizeof(piece) + 8);
  memcpy(body.data(), &head, sizeof(head));
  memcpy(body.data() + sizeof(head), &piece, sizeof(piece));
  out.push_back(body);
  out.emplace_back();
  add_entry(out.back(), wire::EntryKind::submit, 1, body);
  const agent::Word word{session::kArenaOffset, 8, agent::How::store, 1};
  out.emplace_back(sizeof(word));
  memcpy(out.back().data(), &word, sizeof(word));
  return out;
}
