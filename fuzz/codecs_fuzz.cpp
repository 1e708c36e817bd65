// SPDX-License-Identifier: BSD-3-Clause
// Coding::decode: whatever is said of a chunk and whatever comes, it is refused or fills its place exactly, and nothing else.
// Input: codec, filter, length (2 bytes), then the coded chunk.
#include "kernels/codecs/coding.hpp"
#include "target.hpp"

#include <memory>

using namespace offpath::codecs;

static constexpr size_t kHead = 4;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  static Coding coding;  // what is kept must survive anything
  if (bytes < kHead) return 0;
  const std::vector<uint8_t> exact(data + kHead, data + bytes);  // so that a sanitizer sees a read behind the end
  const Method method{static_cast<CodecId>(data[0]), data[1], 0};
  const size_t length = data[2] | size_t{data[3]} << 8;
  const auto out = std::make_unique<uint8_t[]>(length);
  if (!coding.decode(method, exact, Room(out.get(), length))) return 0;
  if (is_lossy(method.codec)) return 0;
  // What is understood can be said again.
  std::vector<uint8_t> again(2 * length + 1024), once_more(length);
  const size_t coded = coding.encode(method, Bytes(out.get(), length), again);
  if (length > 0) FUZZ_REQUIRE(coded > 0);
  if (length > 0) FUZZ_REQUIRE(coding.decode(method, Bytes(again).first(coded), once_more));
  FUZZ_REQUIRE(length == 0 || checksum(Bytes(out.get(), length)) == checksum(once_more));
  return 0;
}

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  std::vector<std::vector<uint8_t>> out;
  Coding coding;
  for (const CodecId codec : kCodecs) {
    for (const uint8_t width : {1, 8}) {
      for (const size_t length : {5, 300, 5000}) {
        std::vector<uint8_t> in(length);
        for (size_t i = 0; i < length; ++i) in[i] = static_cast<uint8_t>(i % 8 < 5 ? i / 64 : i * i >> 3);
        std::vector<uint8_t> seed(kHead + 2 * length + 1024);
        seed[0] = static_cast<uint8_t>(codec), seed[1] = width;
        seed[2] = static_cast<uint8_t>(length), seed[3] = static_cast<uint8_t>(length >> 8);
        seed.resize(kHead + coding.encode({codec, width, 0}, in, Room(seed).subspan(kHead)));
        out.push_back(seed);
      }
    }
  }
  std::vector<double> waves(700);
  for (size_t i = 0; i < waves.size(); ++i) waves[i] = static_cast<double>(i * i % 997) * (i % 50 == 0 ? 1e9 : 1e-3);
  const std::vector<float> singles(waves.begin(), waves.end());
  const auto add = [&](const Method& method, const void* numbers, size_t length) {
    std::vector<uint8_t> seed(kHead + 2 * length + 1024);
    seed[0] = static_cast<uint8_t>(method.codec), seed[1] = 1;
    seed[2] = static_cast<uint8_t>(length), seed[3] = static_cast<uint8_t>(length >> 8);
    const Bytes in(static_cast<const uint8_t*>(numbers), length);
    seed.resize(kHead + coding.encode(method, in, Room(seed).subspan(kHead)));
    out.push_back(seed);
  };
  for (const CodecId codec : kNumberCodecs) {
    for (const size_t count : {1, 5, 33, 700}) {
      add({codec, 1, 0, {BoundKind::absolute, 1e-4}, Elements::float64}, waves.data(), count * sizeof(double));
      add({codec, 1, 0, {BoundKind::relative, 1e-3}, Elements::float32}, singles.data(), count * sizeof(float));
    }
  }
  return out;
}
