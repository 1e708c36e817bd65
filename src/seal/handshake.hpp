// SPDX-License-Identifier: BSD-3-Clause
// The handshake: both ends of a new connection prove that they know a key, say who they are and what is wanted, and get
// keys for what follows. Pure: each end is asked how many bytes it wants next, is given them, and answers with bytes to
// send. Services, agents, starters and devices use this one. The messages have fixed lengths:
//   greeting   ->  version, wish, security, suites, life, both ids, nonce, proof
//   challenge  <-  own id, nonce, proof
//   proof      ->
//   verdict    <-  accepted, or why not, the own security, the suite; proof
// Proofs are hashes under the key of a label and all that was said before, so none can be used for another message,
// the other direction or another connection. A side without the key is told nothing at all.
#pragma once

#include "seal/seal.hpp"

#include <array>
#include <vector>

namespace offpath::seal {

using PartyId = std::array<uint8_t, 16>;
using Secret = Key;  // what both sides know, made for one use of it

// A key is never used for two things.
enum class Use : char { fabric = 'f', device = 'd' };
Secret secret_for(Use use, const Key& key);

enum class Verdict : uint8_t {
  accepted = 0,
  security = 1,   // the other side wants another one
  crossed = 2,    // its own connection to us stays; wait for that
  duplicate = 3,  // there is one
  gone = 4        // it has lost us
};

struct Greeting {
  uint8_t wish = 0;  // what the connection is for
  Security security = Security::auth;
  PartyId from{};
  PartyId to{};      // zeros: whoever knows the key
  uint8_t life = 0;  // so often the two have lost each other, as far as this side knows
};

inline constexpr size_t kProofBytes = sizeof(Key);
inline constexpr size_t kGreetingBytes = 8 + 4 + 2 * 16 + 32 + kProofBytes;
inline constexpr size_t kChallengeBytes = 16 + 32 + kProofBytes;
inline constexpr size_t kVerdictBytes = 3 + kProofBytes;

using Words = std::vector<uint8_t>;  // to be sent; a few

enum class Stage {
  greeting,   // who listens waits for it
  challenge,  // who connects waits for it
  proof,      // who listens
  judging,    // who listens has to say judge()
  verdict,    // who connects
  done,
  failed
};

class Initiator {
 public:
  Initiator(const Secret& secret, const Greeting& greeting, uint32_t suites = known_suites());
  Words greet() const { return {said_.begin(), said_.end()}; }
  Stage stage() const { return stage_; }
  size_t wants() const { return stage_ == Stage::challenge ? kChallengeBytes : kVerdictBytes; }
  // Exactly as many bytes as it wants.
  Words take(Bytes bytes);
  // When failed: whether another party than the wanted one has answered, which knows the key.
  bool met_another() const { return met_another_; }
  // When done.
  Verdict verdict() const { return verdict_; }
  Security other_security() const { return other_security_; }
  const Session& session() const { return session_; }

 private:
  Secret secret_;
  Greeting greeting_;
  uint32_t suites_;
  Stage stage_ = Stage::challenge;
  Words said_;  // by both, so far
  bool met_another_ = false;
  Verdict verdict_ = Verdict::gone;
  Security other_security_ = Security::auth;
  Session session_;
};

class Responder {
 public:
  Responder(const Secret& secret, const PartyId& own, uint32_t suites = known_suites())
      : secret_(secret), own_(own), suites_(suites) {}
  Stage stage() const { return stage_; }
  size_t wants() const { return stage_ == Stage::greeting ? kGreetingBytes : kProofBytes; }
  Words take(Bytes bytes);
  // After the greeting was proven to be somebody's who knows the key (it may be repeated by somebody who does not).
  const Greeting& greeting() const { return greeting_; }
  // In the stage judging, where the other side has proven itself.
  Words judge(Verdict verdict, Security own);
  const Session& session() const { return session_; }

 private:
  Secret secret_;
  PartyId own_;
  Greeting greeting_;
  uint32_t suites_;  // once the other side has greeted: that both know
  Stage stage_ = Stage::greeting;
  Words said_;
  Session session_;
};

}  // namespace offpath::seal
