// SPDX-License-Identifier: BSD-3-Clause
// Datagrams of a multicast group: a header, a chunk, a tag. Sealed with ChaCha20-Poly1305 or AES-256-GCM (where the processor
// has it, twice as fast) under a key of the group, the sender and that choice, with task and chunk as nonce, so a sender
// may seal each chunk of a task once. Little endian. Pure.
// docs/design/0022-multicast.md
#pragma once

#include "fabric/group.hpp"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>

namespace offpath::fabric::multicast {

using Secret = std::array<uint8_t, 32>;
using TeamId = std::array<uint8_t, 16>;
using GroupId = std::array<uint8_t, 8>;

inline constexpr size_t kHeaderBytes = 24;
inline constexpr size_t kTagBytes = 16;
inline constexpr size_t kAroundBytes = kHeaderBytes + kTagBytes;
inline constexpr size_t kMaxDatagramBytes = 65507;  // of UDP
inline constexpr uint32_t kMaxSenders = 1 << 24;

// Bits, and the versions of datagrams.
enum class Seal : uint8_t { chacha = 1, aes = 2 };
uint32_t known_seals();  // here

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
  class Key;
  Key& key_of(uint32_t sender, Seal seal);

  Secret base_;
  GroupId group_;
  bool encrypts_;
  uint32_t senders_;
  std::map<std::pair<uint32_t, Seal>, std::shared_ptr<Key>> keys_;  // made when first needed
};

}  // namespace offpath::fabric::multicast
