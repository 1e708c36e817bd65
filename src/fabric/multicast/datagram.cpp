// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/multicast/datagram.hpp"

#include "base/bytes.hpp"

#include <sodium.h>

#include <algorithm>

namespace offpath::fabric::multicast {
namespace {

constexpr uint8_t kVersion = 1;
static_assert(kTagBytes == crypto_aead_chacha20poly1305_ietf_ABYTES);
static_assert(std::tuple_size_v<Secret> == crypto_aead_chacha20poly1305_ietf_KEYBYTES);

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
static_assert(sizeof(Nonce) == 12);

}  // namespace

Keys::Keys(const Secret& secret, const TeamId& team, uint32_t senders, bool encrypts)
    : base_(derive(secret, 'm', team)), encrypts_(encrypts), senders_(std::min(senders, kMaxSenders)) {
  const Secret name = derive(base_, 'g', {});
  std::copy_n(name.begin(), group_.size(), group_.begin());
}

const Secret& Keys::key_of(uint32_t sender) {
  if (!senders_[sender]) {
    uint8_t of[5];
    base::ByteWriter writer(of);
    writer.number(sender);
    writer.number(static_cast<uint8_t>(encrypts_));
    senders_[sender] = derive(base_, 's', of);
  }
  return *senders_[sender];
}

void Keys::seal(const Label& label, Bytes chunk, uint8_t* out) {
  base::ByteWriter writer(out);
  writer.number(label.sender << 8 | kVersion);
  memcpy(out + 4, group_.data(), group_.size());
  base::ByteWriter numbers(out + 4 + group_.size());
  numbers.number(label.task);
  numbers.number(label.chunk);
  uint8_t* const body = out + kHeaderBytes;
  uint8_t* const tag = body + chunk.size();
  const Secret& key = key_of(label.sender);
  if (encrypts_) {
    crypto_aead_chacha20poly1305_ietf_encrypt_detached(body, tag, nullptr, chunk.data(), chunk.size(), out,
                                                       kHeaderBytes, nullptr, Nonce(label).bytes, key.data());
    return;
  }
  std::copy(chunk.begin(), chunk.end(), body);  // which may be empty
  uint8_t none = 0;
  crypto_aead_chacha20poly1305_ietf_encrypt_detached(&none, tag, nullptr, &none, 0, out, kHeaderBytes + chunk.size(),
                                                     nullptr, Nonce(label).bytes, key.data());
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
  const bool ours = (first & 0xff) == kVersion && label.sender < senders_.size() &&
                    std::equal(group_.begin(), group_.end(), datagram.begin() + 4);
  if (!ours) return std::nullopt;
  const std::span<uint8_t> body = datagram.subspan(kHeaderBytes, datagram.size() - kAroundBytes);
  const uint8_t* const tag = body.data() + body.size();
  const Secret& key = key_of(label.sender);
  uint8_t none = 0;
  const int failed = encrypts_ ? crypto_aead_chacha20poly1305_ietf_decrypt_detached(
                                     body.data(), nullptr, body.data(), body.size(), tag, datagram.data(), kHeaderBytes,
                                     Nonce(label).bytes, key.data())
                               : crypto_aead_chacha20poly1305_ietf_decrypt_detached(
                                     &none, nullptr, &none, 0, tag, datagram.data(), kHeaderBytes + body.size(),
                                     Nonce(label).bytes, key.data());
  if (failed != 0) return std::nullopt;
  return Opened{label, body};
}

}  // namespace offpath::fabric::multicast
