// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/multicast/datagram.hpp"

#include "base/bytes.hpp"

#include <algorithm>

namespace offpath::fabric::multicast {
namespace {

seal::Nonce nonce_of(const Label& label) {
  seal::Nonce nonce;
  base::ByteWriter writer(nonce.data());
  writer.number(label.task);
  writer.number(label.chunk);
  return nonce;
}

}  // namespace

Keys::Keys(const Secret& secret, const TeamId& team, uint32_t senders, bool encrypts)
    : base_(seal::derive(secret, 'm', team)), encrypts_(encrypts), senders_(std::min(senders, kMaxSenders)) {
  const Secret name = seal::derive(base_, 'g');
  std::copy_n(name.begin(), group_.size(), group_.begin());
}

const seal::Cipher& Keys::cipher_of(uint32_t sender, Seal suite) {
  const auto found = ciphers_.find({sender, suite});
  if (found != ciphers_.end()) return found->second;
  uint8_t of[6];
  base::ByteWriter writer(of);
  writer.number(sender);
  writer.number(static_cast<uint8_t>(encrypts_));
  writer.number(static_cast<uint8_t>(suite));
  return ciphers_.try_emplace({sender, suite}, seal::derive(base_, 's', of), suite).first->second;
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
  const seal::Cipher& cipher = cipher_of(label.sender, with);
  if (encrypts_) return cipher.close(body, tag, chunk, {out, kHeaderBytes}, nonce_of(label));
  std::copy(chunk.begin(), chunk.end(), body);  // which may be empty
  uint8_t none = 0;
  cipher.close(&none, tag, {&none, 0}, {out, kHeaderBytes + chunk.size()}, nonce_of(label));
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
  const uint32_t suite = first & 0xff;
  const bool known = suite == static_cast<uint32_t>(Seal::chacha) || suite == static_cast<uint32_t>(Seal::aes);
  const bool ours = known && (seal::known_suites() & suite) != 0 && label.sender < senders_ &&
                    std::equal(group_.begin(), group_.end(), datagram.begin() + 4);
  if (!ours) return std::nullopt;
  const std::span<uint8_t> body = datagram.subspan(kHeaderBytes, datagram.size() - kAroundBytes);
  const uint8_t* const tag = body.data() + body.size();
  const seal::Cipher& cipher = cipher_of(label.sender, static_cast<Seal>(suite));
  uint8_t none = 0;
  const bool good =
      encrypts_ ? cipher.open(body.data(), tag, body, {datagram.data(), kHeaderBytes}, nonce_of(label))
                : cipher.open(&none, tag, {&none, 0}, {datagram.data(), kHeaderBytes + body.size()}, nonce_of(label));
  if (!good) return std::nullopt;
  return Opened{label, body};
}

}  // namespace offpath::fabric::multicast
