// SPDX-License-Identifier: BSD-3-Clause
#include "attach/node_records.hpp"

#include "base/hash.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace offpath::attach {
namespace {

using base::CoreSet;
using base::kMaxCores;

template <typename Value>
uint64_t hash_on(uint64_t hash, const Value& value) {
  return base::hash_on(hash, {reinterpret_cast<const uint8_t*>(&value), sizeof(value)});
}

uint32_t folded(uint64_t hash) { return static_cast<uint32_t>(hash ^ hash >> 32); }

// Cores that follow each other, and as many again further on: so the other threads of cores are numbered. A word for them: the
// first, how many more follow it, and how far on the others are; 0: there are none.
constexpr uint32_t kBits = 10, kMask = (1u << kBits) - 1;
static_assert(kMaxCores == 1u << kBits);
constexpr uint32_t kNoWord = 1u << 31;

CoreSet cores_of(uint32_t word) {
  const size_t first = word & kMask, last = first + (word >> kBits & kMask), on = word >> 2 * kBits & kMask;
  CoreSet cores;
  for (size_t core = first; core <= last && core < kMaxCores; ++core) {
    cores.set(core);
    if (on > 0 && core + on < kMaxCores) cores.set(core + on);
  }
  return cores;
}

// kNoWord and a hash: there is no word for them.
uint32_t word_of(const CoreSet& cores) {
  const auto next = [&](size_t core, bool is_in) {
    while (core < kMaxCores && cores[core] != is_in) ++core;
    return core;
  };
  const size_t first = next(0, true), end = next(first, false), others = next(end, true);
  if (first < kMaxCores) {
    const size_t on = others < kMaxCores ? others - first : 0;
    const auto word = static_cast<uint32_t>(first | (end - first - 1) << kBits | on << 2 * kBits);
    if (cores_of(word) == cores) return word;
  }
  return kNoWord | folded(hash_on(base::kHashOfNothing, cores));
}

// Without what follows from the cores that it is bound to, which are most processes' own.
NodeRecord told(NodeRecord record) {
  if (record.allowed == record.bound) record.allowed.reset();
  return record;
}

}  // namespace

NodeRecords::Brief NodeRecords::brief_of(const NodeRecord& record) {
  const uint64_t rest = hash_on(hash_on(hash_on(base::kHashOfNothing, record.host), record.allowed), record.has_dpu);
  return {record.key, folded(rest), word_of(record.bound)};
}

NodeRecords::NodeRecords(const std::vector<NodeRecord>& all) {
  for (const NodeRecord& each : all) briefs_.push_back(brief_of(told(each)));
  const std::vector<uint8_t> speaks = find_speakers();
  for (size_t process = 0; process < all.size(); ++process) {
    if (speaks[process] != 0) said_.push_back(told(all[process]));
  }
}

bool NodeRecords::gather(const Exchange& job, const NodeRecord& own, NodeRecords* out) {
  const NodeRecord record = told(own);
  *out = {};
  if (!job.gather(brief_of(record), &out->briefs_)) return false;
  const std::vector<uint8_t> speaks = out->find_speakers();
  out->said_.resize(static_cast<size_t>(std::count(speaks.begin(), speaks.end(), 1)));
  return job.gather_some(&record, sizeof(record), speaks, out->said_.data());
}

std::vector<uint8_t> NodeRecords::find_speakers() {
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> known;  // who says it, by node and hash
  std::vector<uint8_t> speaks;
  uint32_t count = 0;
  for (Brief& brief : briefs_) {
    const auto speaker_of = [&](uint64_t hash) { return known.try_emplace({brief.key, hash}, count).first->second; };
    brief.rest = speaker_of(brief.rest);
    // No hash of a rest has the upper half.
    if ((brief.bound & kNoWord) != 0) brief.bound = kNoWord | speaker_of(uint64_t{brief.bound} << 32);
    const bool is_new = brief.rest == count || brief.bound == (kNoWord | count);
    speaks.push_back(is_new ? 1 : 0);
    count += is_new ? 1 : 0;
  }
  return speaks;
}

NodeRecord NodeRecords::operator[](size_t process) const {
  const Brief& brief = briefs_[process];
  NodeRecord record = said_[brief.rest];
  record.bound = (brief.bound & kNoWord) != 0 ? said_[brief.bound & ~kNoWord].bound : cores_of(brief.bound);
  record.allowed |= record.bound;
  return record;
}

}  // namespace offpath::attach
