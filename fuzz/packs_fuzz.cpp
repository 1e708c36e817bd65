// SPDX-License-Identifier: BSD-3-Clause
// multicast::Packs: whatever datagrams come, a pack that is whole is one of its sender's, and as long as was said.
// Input: datagrams, each a sender, a number (4 bytes), a length, and as many bytes.
#include "multicast/packs.hpp"
#include "target.hpp"

using namespace offpath::multicast;

static constexpr size_t kHead = 6;
static constexpr uint32_t kChunk = 40, kPack = 10;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  const std::vector<uint64_t> parts{1000, 400, 0, 30};
  Arrivals arrivals(*Shape::make(parts, kChunk), 1);
  Packs packs = *Packs::make(kPack, kChunk);
  while (bytes >= kHead) {
    const uint32_t number = data[1] | uint32_t{data[2]} << 8 | uint32_t{data[3]} << 16 | uint32_t{data[4]} << 24;
    const size_t length = std::min<size_t>(data[5], bytes - kHead);
    const std::vector<uint8_t> exact(data + kHead,
                                     data + kHead + length);  // so that a sanitizer sees a read behind the end
    const auto whole = packs.take(arrivals, data[0], number, exact);
    if (whole) {
      const Shape& shape = arrivals.shape();
      FUZZ_REQUIRE(data[0] < parts.size() && whole->pack.count > 0 && whole->pack.count <= kPack);
      FUZZ_REQUIRE(shape.owner(whole->pack.first) == data[0]);
      FUZZ_REQUIRE(whole->pack.first + whole->pack.count <= shape.part(data[0]).first + shape.part(data[0]).count);
      FUZZ_REQUIRE(whole->bytes.size() == whole->coded.bytes);
      FUZZ_REQUIRE(whole->bytes.size() < shape.bytes(data[0], whole->pack));
      if (number % 2 == 0) arrivals.note(whole->pack);
    }
    FUZZ_REQUIRE(packs.fetched_too() <= arrivals.shape().chunks());
    data += kHead + length;
    bytes -= kHead + length;
  }
  return 0;
}

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  std::vector<std::vector<uint8_t>> out;
  Packs packs = *Packs::make(kPack, kChunk);
  const std::vector<uint8_t> coded(300, 7);
  for (const uint32_t length : {5U, 30U, 100U, 290U}) {
    std::vector<uint8_t> seed;
    for (const uint32_t first : {0U, 10U, 25U}) {
      for (uint32_t i = 0; i < packs.datagrams(length); ++i) {
        const auto datagram = packs.write({length, 9, 1, 8}, std::span(coded).first(length), i);
        const uint32_t number = kCoded | (first + i);
        seed.push_back(first == 25 ? 1 : 0);
        for (int shift = 0; shift < 32; shift += 8) seed.push_back(static_cast<uint8_t>(number >> shift));
        seed.push_back(static_cast<uint8_t>(datagram.size()));
        seed.insert(seed.end(), datagram.begin(), datagram.end());
      }
    }
    out.push_back(seed);
  }
  return out;
}
