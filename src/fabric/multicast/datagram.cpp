// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/multicast/datagram.hpp"

#include "base/bytes.hpp"

#include <sodium.h>

#include <algorithm>

namespace offpath::fabric::multicast {
namespace {

static_assert(kTagBytes == crypto_aead_chacha20poly1305_ietf_ABYTES && kTagBytes == crypto_aead_aes256gcm_ABYTES);
static_assert(std::tuple_size_v<Secret> == crypto_aead_chacha20poly1305_ietf_KEYBYTES &&
              std::tuple_size_v<Secret> == crypto_aead_aes256gcm_KEYBYTES);

Secret derive(const Secret& secret, char label, Bytes of) {
  Secret out;
  crypto_generichash_state state;
  crypto_generichash_init(&state, secret.data(), secret.size(), out.size());
  crypto_generichash_update(&state, reinterpret_cast<const uint8_t*>(&label), 1);
  crypto_generichash_update(&state, of.data(), of.size());
  crypto_generichash_final(&state, out.data(), out.size());
  return out;
}

struct Nonce {
  explicit Nonce(const Label& label) {
    base::ByteWriter writer(bytes);
    writer.number(label.task);
    writer.number(label.chunk);
  }
  uint8_t bytes[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
};
static_assert(sizeof(Nonce) == crypto_aead_aes256gcm_NPUBBYTES);

}  // namespace

uint32_t known_seals() {
  const bool aes = sodium_init() >= 0 && crypto_aead_aes256gcm_is_available() != 0;
  return static_cast<uint32_t>(Seal::chacha) | (aes ? static_cast<uint32_t>(Seal::aes) : 0);
}

// Both algorithms behind one pair of calls; `more` is proven, but not hidden.
class Keys::Key {
 public:
  Key(const Secret& secret, Seal seal) : secret_(secret), seal_(seal) {
    if (seal_ == Seal::aes) crypto_aead_aes256gcm_beforenm(&state_, secret.data());
  }
  void close(uint8_t* out, uint8_t* tag, Bytes text, Bytes more, const Nonce& nonce) const {
    if (seal_ == Seal::aes) {
      crypto_aead_aes256gcm_encrypt_detached_afternm(out, tag, nullptr, text.data(), text.size(), more.data(),
                                                     more.size(), nullptr, nonce.bytes, &state_);
    } else {
      crypto_aead_chacha20poly1305_ietf_encrypt_detached(out, tag, nullptr, text.data(), text.size(), more.data(),
                                                         more.size(), nullptr, nonce.bytes, secret_.data());
    }
  }
  bool open(uint8_t* out, const uint8_t* tag, Bytes text, Bytes more, const Nonce& nonce) const {
    if (seal_ == Seal::aes) {
      return crypto_aead_aes256gcm_decrypt_detached_afternm(out, nullptr, text.data(), text.size(), tag, more.data(),
                                                            more.size(), nonce.bytes, &state_) == 0;
    }
    return crypto_aead_chacha20poly1305_ietf_decrypt_detached(out, nullptr, text.data(), text.size(), tag, more.data(),
                                                              more.size(), nonce.bytes, secret_.data()) == 0;
  }

 private:
  alignas(16) crypto_aead_aes256gcm_state state_;
  const Secret secret_;
  const Seal seal_;
};

Keys::Keys(const Secret& secret, const TeamId& team, uint32_t senders, bool encrypts)
    : base_(derive(secret, 'm', team)), encrypts_(encrypts), senders_(std::min(senders, kMaxSenders)) {
  const Secret name = derive(base_, 'g', {});
  std::copy_n(name.begin(), group_.size(), group_.begin());
}

Keys::Key& Keys::key_of(uint32_t sender, Seal seal) {
  auto& key = keys_[{sender, seal}];
  if (key == nullptr) {
    uint8_t of[6];
    base::ByteWriter writer(of);
    writer.number(sender);
    writer.number(static_cast<uint8_t>(encrypts_));
    writer.number(static_cast<uint8_t>(seal));
    key = std::make_shared<Key>(derive(base_, 's', of), seal);
  }
  return *key;
}

void Keys::seal(const Label& label, Bytes chunk, uint8_t* out, Seal with) {
  base::ByteWriter writer(out);
  writer.number(label.sender << 8 | static_cast<uint8_t>(with));
  memcpy(out + 4, group_.data(), group_.size());
  base::ByteWriter numbers(out + 4 + group_.size());
  numbers.number(label.task);
  numbers.number(label.chunk);
  uint8_t* const body = out + kHeaderBytes;
  uint8_t* const tag = body + chunk.size();
  const Key& key = key_of(label.sender, with);
  if (encrypts_) return key.close(body, tag, chunk, {out, kHeaderBytes}, Nonce(label));
  std::copy(chunk.begin(), chunk.end(), body);  // which may be empty
  uint8_t none = 0;
  key.close(&none, tag, {&none, 0}, {out, kHeaderBytes + chunk.size()}, Nonce(label));
}

std::optional<Keys::Opened> Keys::open(std::span<uint8_t> datagram) {
  if (datagram.size() < kAroundBytes) return std::nullopt;
  base::ByteReader reader(datagram.data());
  const auto first = reader.number<uint32_t>();
  reader.skip(group_.size());
  Label label;
  label.task = reader.number<uint64_t>();
  label.chunk = reader.number<uint32_t>();
  label.sender = first >> 8;
  const uint32_t seal = first & 0xff;
  const bool known = seal == static_cast<uint32_t>(Seal::chacha) || seal == static_cast<uint32_t>(Seal::aes);
  const bool ours = known && (known_seals() & seal) != 0 && label.sender < senders_ &&
                    std::equal(group_.begin(), group_.end(), datagram.begin() + 4);
  if (!ours) return std::nullopt;
  const std::span<uint8_t> body = datagram.subspan(kHeaderBytes, datagram.size() - kAroundBytes);
  const uint8_t* const tag = body.data() + body.size();
  const Key& key = key_of(label.sender, static_cast<Seal>(seal));
  uint8_t none = 0;
  const bool good = encrypts_
                        ? key.open(body.data(), tag, body, {datagram.data(), kHeaderBytes}, Nonce(label))
                        : key.open(&none, tag, {&none, 0}, {datagram.data(), kHeaderBytes + body.size()}, Nonce(label));
  if (!good) return std::nullopt;
  return Opened{label, body};
}

}  // namespace offpath::fabric::multicast
