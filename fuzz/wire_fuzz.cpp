// SPDX-License-Identifier: BSD-3-Clause
// wire::decode: any bytes are refused, or mean a message that encodes to the same bytes.
#include "target.hpp"
#include "wire/message.hpp"

#include <algorithm>

using namespace offpath::wire;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  const std::vector<uint8_t> exact(data, data + bytes);  // so that a sanitizer sees a read behind the end
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
  for (const Kind kind : {Kind::hello, Kind::pull, Kind::data, Kind::offer, Kind::done, Kind::fail, Kind::lost}) {
    Message message;
    message.kind = kind;
    message.bytes = 4096;
    message.pull_id = 77;
    message.status = -7;
    uint8_t bytes[kMaxMessageBytes];
    out.emplace_back(bytes, bytes + encode(message, bytes));
  }
  return out;
}
