// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tcp/seal.hpp"

#include <sodium.h>

#include <cstring>
#include <iterator>

namespace offpath::fabric::tcp {
namespace {

static_assert(std::tuple_size_v<SessionKey> == crypto_aead_chacha20poly1305_ietf_KEYBYTES);
static_assert(kTagBytes == crypto_aead_chacha20poly1305_ietf_ABYTES);

struct Nonce {
  explicit Nonce(uint64_t number) {
    for (size_t i = 0; i < 8; ++i) bytes[4 + i] = static_cast<uint8_t>(number >> (8 * i));
  }
  uint8_t bytes[crypto_aead_chacha20poly1305_ietf_NPUBBYTES] = {};
};

void encrypt(const SessionKey& key, uint64_t number, const uint8_t* in, size_t bytes, uint8_t* out, uint8_t* tag) {
  crypto_aead_chacha20poly1305_ietf_encrypt_detached(out, tag, nullptr, in, bytes, nullptr, 0, nullptr,
                                                     Nonce(number).bytes, key.data());
}

bool decrypt(const SessionKey& key, uint64_t number, uint8_t* bytes, size_t count, const uint8_t* tag) {
  return crypto_aead_chacha20poly1305_ietf_decrypt_detached(bytes, nullptr, bytes, count, tag, nullptr, 0,
                                                            Nonce(number).bytes, key.data()) == 0;
}

// As data that goes with an empty text.
void authenticate(const SessionKey& key, uint64_t number, const uint8_t* in, size_t bytes, uint8_t* tag) {
  uint8_t none = 0;
  crypto_aead_chacha20poly1305_ietf_encrypt_detached(&none, tag, nullptr, &none, 0, in, bytes, nullptr,
                                                     Nonce(number).bytes, key.data());
}

bool verify(const SessionKey& key, uint64_t number, const uint8_t* in, size_t bytes, const uint8_t* tag) {
  uint8_t none = 0;
  return crypto_aead_chacha20poly1305_ietf_decrypt_detached(&none, nullptr, &none, 0, tag, in, bytes,
                                                            Nonce(number).bytes, key.data()) == 0;
}

constexpr Security kAll[] = {Security::auth, Security::full, Security::encrypt};

}  // namespace

const char* name_of(Security security) {
  constexpr const char* kNames[] = {"auth", "full", "encrypt"};
  const auto index = static_cast<size_t>(security) - 1;
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

base::Result<Security> parse_security(const std::string& text) {
  if (text.empty()) return Security::auth;
  for (const Security security : kAll) {
    if (text == name_of(security)) return security;
  }
  return base::Status::error(OFFPATH_ERR_NO_SERVICE,
                             "OFFPATH_FABRIC_SECURITY='%.40s' is not known (services need it to reach each other). "
                             "Leave it out or set it to one of: auth, full, encrypt",
                             text.c_str());
}

void Sealer::seal_prefix(Prefix prefix) {
  uint8_t* const tag = prefix.data() + kFrameBytes;
  if (security_ == Security::encrypt) {
    encrypt(key_, number_++, prefix.data(), kFrameBytes, prefix.data(), tag);
  } else {
    authenticate(key_, number_++, prefix.data(), kFrameBytes, tag);
  }
}

void Sealer::seal_payload(Bytes payload, uint8_t* out) {
  uint8_t* const tag = out + payload.size();
  if (security_ == Security::encrypt) return encrypt(key_, number_++, payload.data(), payload.size(), out, tag);
  memcpy(out, payload.data(), payload.size());
  authenticate(key_, number_++, out, payload.size(), tag);
}

bool Opener::open_prefix(Prefix prefix) {
  const uint8_t* const tag = prefix.data() + kFrameBytes;
  if (security_ == Security::encrypt) return decrypt(key_, number_++, prefix.data(), kFrameBytes, tag);
  return verify(key_, number_++, prefix.data(), kFrameBytes, tag);
}

bool Opener::open_payload(std::span<uint8_t> payload, const uint8_t* tag) {
  if (security_ == Security::encrypt) return decrypt(key_, number_++, payload.data(), payload.size(), tag);
  return verify(key_, number_++, payload.data(), payload.size(), tag);
}

}  // namespace offpath::fabric::tcp
