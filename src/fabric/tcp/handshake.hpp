// SPDX-License-Identifier: BSD-3-Clause
// The handshake: both ends of a new connection prove that they know the job's key, say who they are, and get keys for
// what follows. Pure: each end is asked how many bytes it wants next, is given them, and answers with bytes to send.
// The messages have fixed lengths (docs/design/0016-fabric-tcp.md):
//   greeting   ->  version, lane, security, both ids, nonce, proof
//   challenge  <-  own id, nonce, proof
//   proof      ->
//   verdict    <-  accepted, or why not, and the own security; proof
// Proofs are hashes under the key of a label and all that was said before, so none can be used for another message,
// the other direction or another connection.
#pragma once

#include "fabric/tcp/seal.hpp"

#include <array>
#include <vector>

namespace offpath::fabric::tcp {

using EndpointId = std::array<uint8_t, 16>;
using Secret = std::array<uint8_t, 32>;  // the job's key, or what is made of it

// A key for this use of the job's key only.
Secret fabric_secret(const Secret& job_key);

enum class Verdict : uint8_t {
  accepted = 0,
  security = 1,   // the other side wants another one
  crossed = 2,    // its own connection to us stays; wait for that
  duplicate = 3,  // there is one
  gone = 4        // it has lost us for good
};

struct Greeting {
  Lane lane = Lane::brief;
  Security security = Security::auth;
  EndpointId from{}, to{};
};

struct SessionKeys {
  SessionKey out{}, in{};
};

inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kProofBytes = 32;
inline constexpr size_t kGreetingBytes = 8 + 4 + 2 * 16 + kNonceBytes + kProofBytes;
inline constexpr size_t kChallengeBytes = 16 + kNonceBytes + kProofBytes;
inline constexpr size_t kVerdictBytes = 2 + kProofBytes;

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
  Initiator(const Secret& secret, const Greeting& greeting);
  Words greet() const { return {said_.begin(), said_.end()}; }
  Stage stage() const { return stage_; }
  size_t wants() const { return stage_ == Stage::challenge ? kChallengeBytes : kVerdictBytes; }
  // Exactly as many bytes as it wants.
  Words take(Bytes bytes);
  // When failed: whether another endpoint than the wanted one has answered, which knows the key.
  bool met_another() const { return met_another_; }
  // When done.
  Verdict verdict() const { return verdict_; }
  Security other_security() const { return other_security_; }
  const SessionKeys& keys() const { return keys_; }

 private:
  Secret secret_;
  Greeting greeting_;
  Stage stage_ = Stage::challenge;
  Words said_;  // by both, so far
  bool met_another_ = false;
  Verdict verdict_ = Verdict::gone;
  Security other_security_ = Security::auth;
  SessionKeys keys_;
};

class Responder {
 public:
  Responder(const Secret& secret, const EndpointId& own) : secret_(secret), own_(own) {}
  Stage stage() const { return stage_; }
  size_t wants() const { return stage_ == Stage::greeting ? kGreetingBytes : kProofBytes; }
  Words take(Bytes bytes);
  // After the greeting was proven to be somebody's who knows the key (it may be repeated by somebody who does not).
  const Greeting& greeting() const { return greeting_; }
  // In the stage judging, where the other side has proven itself.
  Words judge(Verdict verdict, Security own);
  const SessionKeys& keys() const { return keys_; }

 private:
  Secret secret_;
  EndpointId own_;
  Greeting greeting_;
  Stage stage_ = Stage::greeting;
  Words said_;
  SessionKeys keys_;
};

}  // namespace offpath::fabric::tcp
