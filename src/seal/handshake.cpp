// SPDX-License-Identifier: BSD-3-Clause
#include "seal/handshake.hpp"

#include "base/random.hpp"

#include <sodium.h>

#include <algorithm>

namespace offpath::seal {
namespace {

constexpr uint8_t kMagic[8] = {'o', 'f', 'f', 'p', 't', 'c', 'p', 2};  // with the version
constexpr size_t kRandomBytes = 32;

void append(Words& words, Bytes bytes) { words.insert(words.end(), bytes.begin(), bytes.end()); }

// Puts the proof of all that was said behind it.
void prove(const Secret& secret, char label, Words& said) { append(said, derive(secret, label, said)); }

// `said` ends with the proof.
bool is_proven(const Secret& secret, char label, Bytes said) {
  const Key wanted = derive(secret, label, said.first(said.size() - kProofBytes));
  return sodium_memcmp(wanted.data(), said.data() + said.size() - kProofBytes, kProofBytes) == 0;
}

Session session_after(const Secret& secret, Bytes said, bool initiator) {
  Session session{derive(secret, 'i', said), derive(secret, 'r', said)};
  if (!initiator) std::swap(session.out, session.in);
  return session;
}

Words last(const Words& said, size_t bytes) { return {said.end() - static_cast<std::ptrdiff_t>(bytes), said.end()}; }

bool is_security(uint8_t value) { return value >= 1 && value <= 3; }

void fill_nonce(Words& words) {
  uint8_t nonce[kRandomBytes];
  base::fill_random(nonce, sizeof(nonce));
  append(words, nonce);
}

}  // namespace

Secret secret_for(Use use, const Key& key) { return derive(key, static_cast<char>(use)); }

Initiator::Initiator(const Secret& secret, const Greeting& greeting, uint32_t suites)
    : secret_(secret), greeting_(greeting), suites_(suites) {
  append(said_, kMagic);
  const uint8_t fields[4] = {greeting.wish, static_cast<uint8_t>(greeting.security), static_cast<uint8_t>(suites_),
                             greeting.life};
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
    met_another_ = greeting_.to != PartyId{} && !std::equal(greeting_.to.begin(), greeting_.to.end(), bytes.begin());
    stage_ = met_another_ ? Stage::failed : Stage::verdict;
    if (met_another_) return {};
    prove(secret_, '3', said_);
    session_ = session_after(secret_, said_, true);
    return last(said_, kProofBytes);
  }
  const bool suite =
      (bytes[2] == static_cast<uint8_t>(Suite::chacha) || bytes[2] == static_cast<uint8_t>(Suite::aes)) &&
      (suites_ & bytes[2]) != 0;
  const bool known = bytes[0] <= static_cast<uint8_t>(Verdict::gone) && is_security(bytes[1]) && suite;
  stage_ = known ? Stage::done : Stage::failed;
  if (!known) return {};
  verdict_ = static_cast<Verdict>(bytes[0]);
  other_security_ = static_cast<Security>(bytes[1]);
  session_.suite = static_cast<Suite>(bytes[2]);
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
    session_ = session_after(secret_, said_, false);
    session_.suite = best_of(suites_);
    return {};
  }
  const bool known = std::equal(std::begin(kMagic), std::end(kMagic), bytes.begin()) && is_security(bytes[9]);
  if (!known) {
    stage_ = Stage::failed;
    return {};
  }
  greeting_.wish = bytes[8];
  greeting_.security = static_cast<Security>(bytes[9]);
  suites_ &= bytes[10];
  greeting_.life = bytes[11];
  std::copy_n(bytes.begin() + 12, greeting_.from.size(), greeting_.from.begin());
  std::copy_n(bytes.begin() + 28, greeting_.to.size(), greeting_.to.begin());
  append(said_, own_);
  fill_nonce(said_);
  prove(secret_, '2', said_);
  stage_ = Stage::proof;
  return last(said_, kChallengeBytes);
}

Words Responder::judge(Verdict verdict, Security own) {
  const uint8_t fields[3] = {static_cast<uint8_t>(verdict), static_cast<uint8_t>(own),
                             static_cast<uint8_t>(session_.suite)};
  append(said_, fields);
  prove(secret_, '4', said_);
  stage_ = Stage::done;
  return last(said_, kVerdictBytes);
}

}  // namespace offpath::seal
