// SPDX-License-Identifier: BSD-3-Clause
#include "device/introduction.hpp"

#include "base/bytes.hpp"
#include "base/environment.hpp"
#include "base/random.hpp"
#include "device/munge.hpp"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace offpath::device {

using base::Fd;
using base::Result;
using base::Status;

namespace {

constexpr uint32_t kMungeMagic = 0x4d50464fU;              // "OFPM", where a greeting would begin
constexpr size_t kCredentialAt = sizeof(kMungeMagic) + 4;  // behind its length
constexpr size_t kMostCredentialBytes = 64 << 10;
constexpr size_t kMostRequestBytes = 16 << 10;
constexpr size_t kPurposeBytes = 4;
constexpr size_t kNonce = 32;  // in an answer it shows to which request
constexpr uid_t kRoot = 0;

std::string number_text(uint32_t value) {
  std::string text(4, '\0');
  base::ByteWriter(reinterpret_cast<uint8_t*>(text.data())).number(value);
  return text;
}

uint32_t number_of(const void* text) { return base::ByteReader(static_cast<const uint8_t*>(text)).number<uint32_t>(); }

bool is_purpose(uint32_t value) {
  return value >= static_cast<uint32_t>(Purpose::regions) && value <= static_cast<uint32_t>(Purpose::probe);
}

Result<Answered> introduce_by_key(const DeviceEntry& entry, const Key& key, Purpose purpose, const std::string& request,
                                  int timeout_ms) {
  auto connection = connect_remote(entry, key, timeout_ms, purpose);
  if (!connection.ok()) return connection.status();
  const Status status = send_text(connection->line, request);
  if (!status.ok()) return status;
  auto answer = receive_text(connection->line, kMostRequestBytes, timeout_ms);
  if (!answer.ok()) return answer.status();
  return Answered{std::move(connection.value()), std::move(answer.value())};
}

// A starter that serves users runs as root, so root alone reads what they say; or it is the user's own.
Result<Answered> introduce_by_munge(const DeviceEntry& entry, Purpose purpose, const std::string& request,
                                    int timeout_ms) {
  auto socket = dial(entry, timeout_ms);
  if (!socket.ok()) return socket.status();
  std::string nonce(kNonce, '\0');
  base::fill_random(nonce.data(), nonce.size());
  const auto credential = munge_seal(number_text(static_cast<uint32_t>(purpose)) + nonce + request, kRoot);
  if (!credential.ok()) return credential.status();
  std::string magic = number_text(kMungeMagic);
  const iovec part{magic.data(), magic.size()};
  const Line line(socket->get());
  Status status = line.send(std::span(&part, 1));
  if (status.ok()) status = send_text(line, credential.value());
  const auto answer = status.ok() ? receive_text(line, kMostCredentialBytes, timeout_ms) : status;
  if (!answer.ok()) {  // closed while we speak, or then
    return Status::error(answer.status().code(), "%s (its starter may not take MUNGE's word)", answer.status().text());
  }
  const auto opened = munge_open(answer.value());
  if (!opened.ok()) return opened.status();
  if (opened->uid != kRoot || opened->text.compare(0, kNonce, nonce) != 0)
    return Status::error(OFFPATH_ERR_PERMISSION, "the answer is not the starter's. See who listens there");
  return Answered{std::move(socket.value()), opened->text.substr(kNonce)};
}

}  // namespace

Result<Answered> introduce(const DeviceEntry& entry, Purpose purpose, const std::string& request, int timeout_ms) {
  const std::string path = base::Environment::text("OFFPATH_DEVICE_KEY_FILE");
  if (path.empty() || path == "none") return introduce_by_munge(entry, purpose, request, timeout_ms);
  const auto key = read_key(path);
  if (!key.ok()) return key.status();
  return introduce_by_key(entry, key.value(), purpose, request, timeout_ms);
}

Introduction::Introduction(const std::optional<Key>& key, bool munge) : munge_(munge) {
  if (!key) return;
  seal::PartyId own;
  base::fill_random(own.data(), own.size());
  responder_.emplace(seal::secret_for(seal::Use::device, *key), own);
}

bool Introduction::names_munge() const {
  return !has_greeted() && got_.size() >= sizeof(kMungeMagic) && number_of(got_.data()) == kMungeMagic;
}

// Bytes of what he says next, with what of it has come; 0: nothing that somebody may say begins so.
size_t Introduction::wanted() const {
  if (!has_greeted() && got_.size() < sizeof(kMungeMagic)) return sizeof(kMungeMagic);
  if (!names_munge()) return responder_ ? responder_->wants() : 0;
  if (!munge_) return 0;
  if (got_.size() < kCredentialAt) return kCredentialAt;
  const uint32_t bytes = number_of(got_.data() + sizeof(kMungeMagic));
  return bytes <= kMostCredentialBytes ? kCredentialAt + bytes : 0;
}

Introduction::Stage Introduction::take(int socket) {
  while (stage_ == Stage::hears) {
    const size_t before = got_.size(), all = wanted();
    if (all == 0) return stage_ = Stage::refused;
    if (names_munge() && before == all) return stage_ = Stage::credential;
    got_.resize(all);
    const ssize_t got = recv(socket, got_.data() + before, all - before, MSG_DONTWAIT);
    got_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return stage_;
    if (got <= 0) return stage_ = Stage::refused;
    if (responder_ && !names_munge() && got_.size() == responder_->wants()) stage_ = take_words();
    if (says_.empty()) continue;
    const ssize_t said = send(socket, says_.data(), says_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (said != static_cast<ssize_t>(says_.size())) return stage_ = Stage::refused;  // a few bytes always fit
    says_.clear();
  }
  return stage_;
}

Introduction::Stage Introduction::take_words() {
  says_ = responder_->take(std::exchange(got_, {}));
  if (responder_->stage() == seal::Stage::failed) return Stage::refused;
  if (responder_->stage() != seal::Stage::judging) return Stage::hears;
  const seal::Greeting& greeting = responder_->greeting();
  if (!is_purpose(greeting.wish)) return Stage::refused;
  purpose_ = static_cast<Purpose>(greeting.wish);
  if (security_for(purpose_, greeting.security) != greeting.security) return Stage::refused;
  says_ = responder_->judge(seal::Verdict::accepted, greeting.security);
  return Stage::proven;
}

Status Introduction::hear_request(int socket, int timeout_ms) {
  if (stage_ == Stage::proven) {
    if (purpose_ == Purpose::regions) return {};
    line_.emplace(socket, session(), security());
    auto request = receive_text(*line_, kMostRequestBytes, timeout_ms);
    if (!request.ok()) return Status::error(OFFPATH_ERR_PERMISSION, "%s", request.status().text());
    request_ = std::move(request.value());
    return {};
  }
  const auto opened = munge_open({got_.begin() + kCredentialAt, got_.end()});
  if (!opened.ok()) return Status::error(OFFPATH_ERR_PERMISSION, "%s", opened.status().text());
  if (opened->text.size() < kPurposeBytes + kNonce) return Status::error(OFFPATH_ERR_PERMISSION, "a request too short");
  purpose_ = static_cast<Purpose>(number_of(opened->text.data()));
  if (purpose_ != Purpose::service && purpose_ != Purpose::probe)
    return Status::error(OFFPATH_ERR_PERMISSION, "who is known by MUNGE wants what only a key opens");
  nonce_ = opened->text.substr(kPurposeBytes, kNonce);
  request_ = opened->text.substr(kPurposeBytes + kNonce);
  user_ = opened->uid;
  return {};
}

Status Introduction::answer(int socket, const std::string& text) {
  if (!user_) return send_text(*line_, text);
  const auto credential = munge_seal(nonce_ + text, *user_);
  return credential.ok() ? send_text(socket, credential.value()) : credential.status();
}

}  // namespace offpath::device
