// SPDX-License-Identifier: BSD-3-Clause
// Datagrams of a multicast group: a header, a chunk, a tag. Sealed with ChaCha20-Poly1305 or AES-256-GCM (where the processor
// has it, twice as fast) under a key of the group, the sender and that choice, with task and chunk as nonce, so a sender
// may seal each chunk of a task once. Little endian. Pure.
// docs/design/0022-multicast.md
#pragma once

#include "fabric/group.hpp"
#include "seal/cipher.hpp"

#include <array>
#include <map>
#include <optional>
#include <span>

namespace offpath::fabric::multicast {

using Secret = seal::Key;
using TeamId = std::array<uint8_t, 16>;
using GroupId = std::array<uint8_t, 8>;

inline constexpr size_t kHeaderBytes = 24;
using seal::kTagBytes;
inline constexpr size_t kAroundBytes = kHeaderBytes + kTagBytes;
inline constexpr size_t kMaxDatagramBytes = 65507;  // of UDP
inline constexpr uint32_t kMaxSenders = 1 << 24;

using Seal = seal::Suite;  // its bit is the version of a datagram, too

// What the members of a group know. Made of the job's secret, so nobody else does.
class Keys {
 public:
  Keys(const Secret& secret, const TeamId& team, uint32_t senders, bool encrypts);

  // What tells the group's datagrams from those of others. No secret, as the team's id is.
  const GroupId& group() const { return group_; }
  // `out`: as long as chunk and kAroundBytes together.
  void seal(const Label& label, Bytes chunk, uint8_t* out, Seal with = Seal::chacha);
  // Decrypts in place. Nothing: it is none of this group, or was changed.
  struct Opened {
    Label label;
    Bytes chunk;
  };
  std::optional<Opened> open(std::span<uint8_t> datagram);

 private:
  const seal::Cipher& cipher_of(uint32_t sender, Seal suite);

  Secret base_;
  GroupId group_;
  bool encrypts_;
  uint32_t senders_;
  std::map<std::pair<uint32_t, Seal>, seal::Cipher> ciphers_;  // made when first needed
};

}  // namespace offpath::fabric::multicast
