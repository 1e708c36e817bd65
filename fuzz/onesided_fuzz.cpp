// SPDX-License-Identifier: BSD-3-Clause
// remote, ops/onesided: any body is refused, or means a request that encodes to the same bytes; and whatever it means, a
// target touches nothing outside the memory that is open.
#include "../tests/unit/remote/body.hpp"
#include "ops/onesided/target.hpp"
#include "target.hpp"

#include <algorithm>

using namespace offpath::ops::onesided;
using offpath::remote::testing::Body;

namespace {

constexpr size_t kBytes = 256;  // open, in the middle of three times as many
uint8_t space[3 * kBytes];

uint64_t base() { return reinterpret_cast<uint64_t>(space + kBytes); }

bool guards_stand() {
  const auto stands = [](uint8_t byte) { return byte == 0x5A; };
  return std::all_of(space, space + kBytes, stands) && std::all_of(space + 2 * kBytes, space + 3 * kBytes, stands);
}

std::vector<uint8_t> body_of(uint64_t window, offpath_remote_kind_t kind, bool contiguous, uint64_t bytes) {
  Body wanted;
  wanted.window = window;
  wanted.kind = kind;
  wanted.offset = window == 0 ? 16 : base() + 16;
  wanted.bytes = bytes;
  wanted.contiguous = contiguous;
  if (!contiguous) wanted.layout = {8, 16, {{-4, 4}, {4, 4}}};
  if (accumulates(kind)) {
    wanted.reduction = {kind == OFFPATH_COMPARE_AND_SWAP ? OFFPATH_OP_NONE : OFFPATH_OP_SUM, OFFPATH_ELEMENT_I64};
  }
  if (is_short(wanted)) wanted.data.resize(data_bytes(wanted));
  return encode(wanted);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  const std::vector<uint8_t> exact(data, data + bytes);  // so that a sanitizer sees a read behind the end
  const auto wanted = offpath::remote::decode(exact);
  if (wanted.ok()) {
    std::vector<uint8_t> again;
    encode(wanted->wanted, wanted->data, again);
    FUZZ_REQUIRE(again == exact);
  } else {
    FUZZ_REQUIRE(wanted.status().code() == OFFPATH_ERR_ARGUMENT && wanted.status().text()[0] != '\0');
  }
  std::fill(std::begin(space), std::end(space), uint8_t{0x5A});
  Target target([](offpath::graph::RequestId, offpath::graph::Answer) {});
  FUZZ_REQUIRE(target.open(1, 1, 0, base(), kBytes, false).ok());
  FUZZ_REQUIRE(target.open(1, 1, 1, 0, 0, true).ok());
  FUZZ_REQUIRE(target.attach(1, 1, 1, base(), kBytes).ok());
  const std::shared_ptr<offpath::memory::Port> memory = offpath::memory::make_direct();
  for (offpath::graph::RequestId request = 1; request < 3; ++request) {
    const auto answer = target.on_request(1, 1, 0, request, memory, exact);
    FUZZ_REQUIRE(wanted.ok() || answer.status.code() == OFFPATH_ERR_ARGUMENT);
    FUZZ_REQUIRE(answer.payload.size() <= offpath::remote::kInlineBytes);
  }
  target.on_answered(1, 1, 1, {});
  FUZZ_REQUIRE(guards_stand());
  return 0;
}

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  std::vector<std::vector<uint8_t>> out{{}};
  for (const uint64_t window : {0, 1}) {
    for (int kind = OFFPATH_PUT; kind <= OFFPATH_COMPARE_AND_SWAP; ++kind) {
      for (const bool contiguous : {true, false}) {
        out.push_back(body_of(window, static_cast<offpath_remote_kind_t>(kind), contiguous, 8));
      }
    }
    out.push_back(body_of(window, OFFPATH_LOCK_SHARED, true, 0));
    out.push_back(body_of(window, OFFPATH_ACCUMULATE, true, 4096));
  }
  return out;
}
