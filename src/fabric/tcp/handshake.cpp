// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tcp/handshake.hpp"

#include "base/random.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>

namespace offpath::fabric::tcp {
namespace {

constexpr uint8_t kMagic[8] = {'o', 'f', 'f', 'p', 't', 'c', 'p', 1};  // with the version

using Hash = std::array<uint8_t, kProofBytes>;
static_assert(kProofBytes == crypto_generichash_BYTES && sizeof(Hash) == sizeof(Secret));

Hash hash(const Secret& secret, char label, Bytes said) {
  Hash out;
  crypto_generichash_state state;
  crypto_generichash_init(&state, secret.data(), secret.size(), out.size());
  crypto_generichash_update(&state, reinterpret_cast<const uint8_t*>(&label), 1);
  crypto_generichash_update(&state, said.data(), said.size());
  crypto_generichash_final(&state, out.data(), out.size());
  return out;
}

void append(Words& words, Bytes bytes) { words.insert(words.end(), bytes.begin(), bytes.end()); }

// Puts the proof of all that was said behind it.
void prove(const Secret& secret, char label, Words& said) { append(said, hash(secret, label, said)); }

// `said` ends with the proof.
bool is_proven(const Secret& secret, char label, Bytes said) {
  const Hash wanted = hash(secret, label, said.first(said.size() - kProofBytes));
  return sodium_memcmp(wanted.data(), said.data() + said.size() - kProofBytes, kProofBytes) == 0;
}

SessionKeys keys_after(const Secret& secret, Bytes said, bool initiator) {
  SessionKeys keys{hash(secret, 'i', said), hash(secret, 'r', said)};
  if (!initiator) std::swap(keys.out, keys.in);
  return keys;
}

Words last(const Words& said, size_t bytes) { return {said.end() - static_cast<std::ptrdiff_t>(bytes), said.end()}; }

bool is_security(uint8_t value) { return value >= 1 && value <= 3; }

void fill_nonce(Words& words) {
  uint8_t nonce[kNonceBytes];
  base::fill_random(nonce, sizeof(nonce));
  append(words, nonce);
}

}  // namespace

Secret fabric_secret(const Secret& job_key) { return hash(job_key, 'f', {}); }

Initiator::Initiator(const Secret& secret, const Greeting& greeting) : secret_(secret), greeting_(greeting) {
  append(said_, kMagic);
  const uint8_t fields[4] = {static_cast<uint8_t>(greeting.lane), static_cast<uint8_t>(greeting.security), 0, 0};
  append(said_, fields);
  append(said_, greeting.from);
  append(said_, greeting.to);
  fill_nonce(said_);
  prove(secret_, '1', said_);
}

Words Initiator::take(Bytes bytes) {
  const bool challenged = stage_ == Stage::challenge;
  const bool proper = (challenged || stage_ == Stage::verdict) && bytes.size() == wants();
  append(said_, bytes);
  if (!proper || !is_proven(secret_, challenged ? '2' : '4', said_)) {
    stage_ = Stage::failed;
    return {};
  }
  if (challenged) {
    met_another_ = !std::equal(greeting_.to.begin(), greeting_.to.end(), bytes.begin());
    stage_ = met_another_ ? Stage::failed : Stage::verdict;
    if (met_another_) return {};
    prove(secret_, '3', said_);
    keys_ = keys_after(secret_, said_, true);
    return last(said_, kProofBytes);
  }
  const bool known = bytes[0] <= static_cast<uint8_t>(Verdict::gone) && is_security(bytes[1]);
  stage_ = known ? Stage::done : Stage::failed;
  verdict_ = static_cast<Verdict>(bytes[0]);
  other_security_ = known ? static_cast<Security>(bytes[1]) : Security::auth;
  return {};
}

Words Responder::take(Bytes bytes) {
  const bool greeted = stage_ == Stage::greeting;
  const bool proper = (greeted || stage_ == Stage::proof) && bytes.size() == wants();
  append(said_, bytes);
  if (!proper || !is_proven(secret_, greeted ? '1' : '3', said_)) {
    stage_ = Stage::failed;
    return {};
  }
  if (!greeted) {
    stage_ = Stage::judging;
    keys_ = keys_after(secret_, said_, false);
    return {};
  }
  const bool known = std::equal(std::begin(kMagic), std::end(kMagic), bytes.begin()) && bytes[8] < kLanes &&
                     is_security(bytes[9]) && bytes[10] == 0 && bytes[11] == 0;
  if (!known) {
    stage_ = Stage::failed;
    return {};
  }
  greeting_.lane = static_cast<Lane>(bytes[8]);
  greeting_.security = static_cast<Security>(bytes[9]);
  std::copy_n(bytes.begin() + 12, greeting_.from.size(), greeting_.from.begin());
  std::copy_n(bytes.begin() + 28, greeting_.to.size(), greeting_.to.begin());
  append(said_, own_);
  fill_nonce(said_);
  prove(secret_, '2', said_);
  stage_ = Stage::proof;
  return last(said_, kChallengeBytes);
}

Words Responder::judge(Verdict verdict, Security own) {
  const uint8_t fields[2] = {static_cast<uint8_t>(verdict), static_cast<uint8_t>(own)};
  append(said_, fields);
  prove(secret_, '4', said_);
  stage_ = Stage::done;
  return last(said_, kVerdictBytes);
}

}  // namespace offpath::fabric::tcp
