// SPDX-License-Identifier: BSD-3-Clause
#include "multicast/packs.hpp"

#include <algorithm>
#include <numeric>

namespace offpath::multicast {
namespace {

constexpr size_t kNumberBytes = 8;
constexpr size_t kMostPackBytes = 1 << 20;

void put(uint8_t* to, uint32_t value) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<uint8_t>(value >> 8 * i);
}
uint32_t get(const uint8_t* from) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= uint32_t{from[i]} << 8 * i;
  return value;
}

}  // namespace

uint32_t Packs::chunks_for(size_t chunk_bytes, size_t pack_bytes) {
  const size_t step = kNumberBytes / std::gcd(chunk_bytes, kNumberBytes);
  const size_t chunks = (pack_bytes + chunk_bytes - 1) / chunk_bytes;
  return static_cast<uint32_t>((chunks + step - 1) / step * step);
}

std::optional<Packs> Packs::make(uint32_t pack_chunks, size_t chunk_bytes) {
  const bool possible = pack_chunks > 0 && chunk_bytes > kCodedHeadBytes && chunk_bytes <= kMostPackBytes &&
                        pack_chunks <= kMostPackBytes / chunk_bytes;
  return possible ? std::optional(Packs(pack_chunks, chunk_bytes)) : std::nullopt;
}

Chunks Packs::pack_of(const Shape& shape, uint32_t chunk) const {
  const Chunks part = shape.part(shape.owner(chunk));
  const uint32_t before = (chunk - part.first) / pack_chunks_ * pack_chunks_;
  return {part.first + before, std::min(pack_chunks_, part.count - before)};
}

size_t Packs::worthwhile(const Chunks& pack, uint64_t bytes) const {
  const uint64_t around = bytes / 16 + pack.count * kCodedHeadBytes;
  return static_cast<size_t>(bytes - std::min(bytes, around));
}

Packs::Bytes Packs::write(const Coded& coded, Bytes bytes, uint32_t index) {
  const Bytes piece = bytes.subspan(index * room(), std::min(room(), bytes.size() - index * room()));
  datagram_.resize(kCodedHeadBytes + piece.size());
  put(datagram_.data(), coded.bytes);
  put(datagram_.data() + 4, coded.check);
  datagram_[8] = coded.codec;
  datagram_[9] = coded.width;
  std::copy(piece.begin(), piece.end(), datagram_.begin() + kCodedHeadBytes);
  return datagram_;
}

std::optional<Packs::Whole> Packs::take(const Arrivals& arrivals, uint32_t sender, uint32_t number, Bytes datagram) {
  const Shape& shape = arrivals.shape();
  const uint32_t chunk = number & ~kCoded;
  if (chunk >= shape.chunks() || shape.owner(chunk) != sender || datagram.size() <= kCodedHeadBytes)
    return std::nullopt;
  const Chunks pack = pack_of(shape, chunk);
  const Chunks gap = arrivals.gap(sender, pack.first, 1);
  if (gap.count == 0 || gap.first >= pack.first + pack.count) return std::nullopt;
  const Coded coded{get(datagram.data()), get(datagram.data() + 4), datagram[8], datagram[9]};
  const uint32_t index = chunk - pack.first;
  const bool fits = coded.bytes > 0 && coded.bytes < shape.bytes(sender, pack) && index < datagrams(coded.bytes) &&
                    datagrams(coded.bytes) <= pack.count;
  if (!fits || datagram.size() - kCodedHeadBytes != std::min(room(), coded.bytes - index * room())) return std::nullopt;
  Open* const entry = open(pack, coded);
  if (entry == nullptr || entry->here[index]) return std::nullopt;
  entry->here[index] = true;
  std::copy(datagram.begin() + kCodedHeadBytes, datagram.end(),
            entry->bytes.begin() + static_cast<std::ptrdiff_t>(index * room()));
  if (--entry->missing > 0) return std::nullopt;
  spared_ += pack.count - entry->here.size();
  Whole whole{pack, coded, std::move(entry->bytes)};
  open_.erase(pack.first);
  return whole;
}

// Null: the pack was said to be another one before.
Packs::Open* Packs::open(const Chunks& pack, const Coded& coded) {
  const auto found = open_.find(pack.first);
  if (found != open_.end()) return found->second.coded == coded ? &found->second : nullptr;
  if (open_.size() >= kMostOpen) {
    open_.erase(std::min_element(open_.begin(), open_.end(),
                                 [](const auto& a, const auto& b) { return a.second.age < b.second.age; }));
  }
  const uint32_t count = datagrams(coded.bytes);
  Open entry{pack, coded, std::vector<uint8_t>(coded.bytes), std::vector<bool>(count), count, opened_++};
  return &open_.emplace(pack.first, std::move(entry)).first->second;
}

uint64_t Packs::spared() const {
  uint64_t spared = spared_;
  for (const auto& [first, entry] : open_) spared += entry.pack.count - entry.here.size();
  return spared;
}

uint64_t Packs::fetched_too() const {
  uint64_t chunks = 0;
  for (const auto& [first, entry] : open_) chunks += entry.pack.count - entry.missing;
  return chunks;
}

}  // namespace offpath::multicast
