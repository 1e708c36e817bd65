// SPDX-License-Identifier: BSD-3-Clause
// Cipher: the one way in which bytes are proven, and hidden where that was asked for: AES-256-GCM where both sides have it
// in hardware, else ChaCha20-Poly1305. Both are pure functions of a key and a nonce, which never meets that key again.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

namespace offpath::seal {

using Bytes = std::span<const uint8_t>;
using Key = std::array<uint8_t, 32>;

inline constexpr size_t kTagBytes = 16;
inline constexpr size_t kNonceBytes = 12;
using Nonce = std::array<uint8_t, kNonceBytes>;

// Bits.
enum class Suite : uint8_t { chacha = 1, aes = 2 };
uint32_t known_suites();  // of this processor
// The fastest one of those that both sides know; chacha is known to all.
Suite best_of(uint32_t suites);

// Of the key `from` one for this label, and what it is about, only.
Key derive(const Key& from, char label, Bytes about = {});

class Cipher {
 public:
  Cipher(const Key& key, Suite suite);
  // `out` gets `text` hidden (may be where `text` is), `tag` what proves it and `beside`, which is only proven.
  void close(uint8_t* out, uint8_t* tag, Bytes text, Bytes beside, const Nonce& nonce) const;
  // False: one of them was changed; then `out` holds nothing of use.
  bool open(uint8_t* out, const uint8_t* tag, Bytes text, Bytes beside, const Nonce& nonce) const;

 private:
  struct Schedule;  // of AES: made of the key once
  Key key_;
  std::shared_ptr<const Schedule> schedule_;  // null: chacha
};

}  // namespace offpath::seal
