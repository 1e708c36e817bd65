// SPDX-License-Identifier: BSD-3-Clause
// wire::decode: any bytes are refused, or mean a message that encodes to the same bytes. wire::take_entry: any bytes
// are entries that lie inside, one after the other, and a rest.
#include "target.hpp"
#include "wire/batch.hpp"

#include <algorithm>

using namespace offpath::wire;

static void take_apart(std::span<const uint8_t> rest) {
  while (true) {
    const std::span<const uint8_t> before = rest;
    const auto entry = take_entry(rest);
    if (!entry) {
      FUZZ_REQUIRE(rest.data() == before.data() && rest.size() == before.size());
      return;
    }
    FUZZ_REQUIRE(entry->header.data() == before.data() + kEntryOverheadBytes);
    FUZZ_REQUIRE(entry->payload.data() == entry->header.data() + entry->header.size());
    FUZZ_REQUIRE(rest.data() == entry->payload.data() + entry->payload.size());
    FUZZ_REQUIRE(kEntryOverheadBytes + entry->header.size() + entry->payload.size() + rest.size() == before.size());
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  const std::vector<uint8_t> exact(data, data + bytes);  // so that a sanitizer sees a read behind the end
  take_apart(exact);
  const auto message = decode(exact);
  if (!message.ok()) {
    FUZZ_REQUIRE(message.status().code() == OFFPATH_ERR_ARGUMENT && message.status().text()[0] != '\0');
    return 0;
  }
  FUZZ_REQUIRE(message.value().bytes <= kMaxBlockBytes && message.value().offset <= message.value().bytes);
  uint8_t again[kMaxMessageBytes];
  const size_t length = encode(message.value(), again);
  FUZZ_REQUIRE(length == bytes && std::equal(exact.begin(), exact.end(), again));
  return 0;
}

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  std::vector<std::vector<uint8_t>> out;
  for (const Kind kind :
       {Kind::hello, Kind::pull, Kind::data, Kind::done, Kind::fail, Kind::lost, Kind::batch, Kind::request,
        Kind::reply, Kind::push, Kind::ping, Kind::pong, Kind::coded, Kind::task, Kind::fetch}) {
    Message message;
    message.kind = kind;
    message.bytes = 4096;
    message.pull_id = 77;
    message.status = -7;
    uint8_t bytes[kMaxMessageBytes];
    out.emplace_back(bytes, bytes + encode(message, bytes));
    uint8_t entry[256] = {};
    out.emplace_back(entry, entry + encode_entry(message, 20, entry) + 20);
  }
  return out;
}
