// SPDX-License-Identifier: BSD-3-Clause
#include "seal/cipher.hpp"

#include <sodium.h>

namespace offpath::seal {
namespace {

static_assert(kTagBytes == crypto_aead_chacha20poly1305_ietf_ABYTES && kTagBytes == crypto_aead_aes256gcm_ABYTES);
static_assert(kNonceBytes == crypto_aead_chacha20poly1305_ietf_NPUBBYTES);
static_assert(kNonceBytes == crypto_aead_aes256gcm_NPUBBYTES);
static_assert(sizeof(Key) == crypto_aead_chacha20poly1305_ietf_KEYBYTES && sizeof(Key) == crypto_generichash_BYTES);
static_assert(sizeof(Key) == crypto_aead_aes256gcm_KEYBYTES);

}  // namespace

uint32_t known_suites() {
  const bool aes = sodium_init() >= 0 && crypto_aead_aes256gcm_is_available() != 0;
  return static_cast<uint32_t>(Suite::chacha) | (aes ? static_cast<uint32_t>(Suite::aes) : 0);
}

Suite best_of(uint32_t suites) {
  return (suites & static_cast<uint32_t>(Suite::aes)) != 0 ? Suite::aes : Suite::chacha;
}

Key derive(const Key& from, char label, Bytes about) {
  Key out;
  crypto_generichash_state state;
  crypto_generichash_init(&state, from.data(), from.size(), out.size());
  crypto_generichash_update(&state, reinterpret_cast<const uint8_t*>(&label), 1);
  crypto_generichash_update(&state, about.data(), about.size());
  crypto_generichash_final(&state, out.data(), out.size());
  return out;
}

struct Cipher::Schedule {
  alignas(16) crypto_aead_aes256gcm_state state;
};

Cipher::Cipher(const Key& key, Suite suite) : key_(key) {
  if (suite != Suite::aes) return;
  auto schedule = std::make_shared<Schedule>();
  crypto_aead_aes256gcm_beforenm(&schedule->state, key.data());
  schedule_ = std::move(schedule);
}

void Cipher::close(uint8_t* out, uint8_t* tag, Bytes text, Bytes beside, const Nonce& nonce) const {
  uint8_t none = 0;
  if (text.empty()) out = &none, text = {&none, 0};  // the library wants addresses
  if (schedule_ != nullptr) {
    crypto_aead_aes256gcm_encrypt_detached_afternm(out, tag, nullptr, text.data(), text.size(), beside.data(),
                                                   beside.size(), nullptr, nonce.data(), &schedule_->state);
  } else {
    crypto_aead_chacha20poly1305_ietf_encrypt_detached(out, tag, nullptr, text.data(), text.size(), beside.data(),
                                                       beside.size(), nullptr, nonce.data(), key_.data());
  }
}

bool Cipher::open(uint8_t* out, const uint8_t* tag, Bytes text, Bytes beside, const Nonce& nonce) const {
  uint8_t none = 0;
  if (text.empty()) out = &none, text = {&none, 0};  // the library wants addresses
  if (schedule_ != nullptr) {
    return crypto_aead_aes256gcm_decrypt_detached_afternm(out, nullptr, text.data(), text.size(), tag, beside.data(),
                                                          beside.size(), nonce.data(), &schedule_->state) == 0;
  }
  return crypto_aead_chacha20poly1305_ietf_decrypt_detached(out, nullptr, text.data(), text.size(), tag, beside.data(),
                                                            beside.size(), nonce.data(), key_.data()) == 0;
}

}  // namespace offpath::seal
