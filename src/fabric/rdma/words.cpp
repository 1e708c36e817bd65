// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/rdma/words.hpp"

#include "base/bytes.hpp"
#include "fabric/tcp/frame.hpp"

#include <array>

namespace offpath::fabric::rdma {
namespace {

constexpr size_t kFieldBytes = 72;
constexpr size_t kMostBytes = tcp::kMaxPayloadBytes;  // as of every payload

}  // namespace

std::vector<uint8_t> encode(const Word& word) {
  std::vector<uint8_t> out(kFieldBytes + word.rest.size());
  base::ByteWriter writer(out.data());
  writer.number(static_cast<uint8_t>(word.kind));
  writer.number(word.end.mtu);
  writer.number(word.end.lid);
  for (const uint32_t number : {word.to, word.you, word.end.number, word.end.first, word.key, word.bytes})
    writer.number(number);
  writer.number(uint32_t{word.end.reads});
  writer.number(word.id);
  writer.number(word.from);
  writer.raw(word.end.gid.data(), word.end.gid.size());
  writer.zeros(kFieldBytes - static_cast<size_t>(writer.end() - out.data()));
  writer.raw(word.rest.data(), word.rest.size());
  return out;
}

std::optional<Word> decode(Bytes in) {
  if (in.size() < kFieldBytes) return std::nullopt;
  Word word;
  base::ByteReader reader(in.data());
  word.kind = static_cast<Word::Kind>(reader.number<uint8_t>());
  word.end.mtu = reader.number<uint8_t>();
  word.end.lid = reader.number<uint16_t>();
  for (uint32_t* const number : {&word.to, &word.you, &word.end.number, &word.end.first, &word.key, &word.bytes})
    *number = reader.number<uint32_t>();
  word.end.reads = static_cast<uint8_t>(reader.number<uint32_t>());
  word.id = reader.number<uint64_t>();
  word.from = reader.number<uint64_t>();
  reader.raw(word.end.gid.data(), word.end.gid.size());
  word.rest = in.subspan(kFieldBytes);
  if (word.kind < Word::Kind::hello || word.kind > Word::Kind::taken) return std::nullopt;
  const bool has_payload = word.kind == Word::Kind::offer;
  if (has_payload && (word.bytes == 0 || word.bytes > kMostBytes || word.rest.size() > kMaxHeaderBytes))
    return std::nullopt;
  return word;
}

}  // namespace offpath::fabric::rdma
