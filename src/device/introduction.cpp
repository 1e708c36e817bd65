// SPDX-License-Identifier: BSD-3-Clause
#include "device/introduction.hpp"

#include "base/bytes.hpp"
#include "base/environment.hpp"
#include "base/random.hpp"
#include "device/frames.hpp"
#include "device/munge.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <vector>

namespace offpath::device {

using base::Fd;
using base::Result;
using base::Status;

namespace {

constexpr uint32_t kMungeMagic = 0x4d50464fU;  // "OFPM", where a challenge would have its purpose
constexpr uint32_t kMostCredentialBytes = 64 << 10;
constexpr size_t kPurposeBytes = 4;
constexpr size_t kNonce = 32;  // in an answer it shows to which request
constexpr uid_t kRoot = 0;

std::string number_text(uint32_t value) {
  std::string text(4, '\0');
  base::ByteWriter(reinterpret_cast<uint8_t*>(text.data())).number(value);
  return text;
}

uint32_t number_of(const std::string& text) {
  return base::ByteReader(reinterpret_cast<const uint8_t*>(text.data())).number<uint32_t>();
}

Status send_text(int socket, const std::string& text) {
  const std::string frame = number_text(static_cast<uint32_t>(text.size())) + text;
  const iovec part{const_cast<char*>(frame.data()), frame.size()};
  return send_all(socket, std::span(&part, 1));
}

Result<std::string> receive_text(int socket, int timeout_ms) {
  std::string text(4, '\0');
  if (const Status status = receive_exactly(socket, text.data(), text.size(), timeout_ms); !status.ok()) return status;
  const uint32_t bytes = number_of(text);
  if (bytes > kMostCredentialBytes) return Status::error(OFFPATH_ERR_ARGUMENT, "a credential of %u bytes", bytes);
  text.resize(bytes);
  if (const Status status = receive_exactly(socket, text.data(), text.size(), timeout_ms); !status.ok()) return status;
  return text;
}

Result<Answered> introduce_by_key(const DeviceEntry& entry, const Key& key, Purpose purpose, const std::string& request,
                                  int timeout_ms) {
  Secrets secrets;
  auto socket = connect_remote(entry, key, timeout_ms, purpose, &secrets);
  if (!socket.ok()) return socket.status();
  if (const Status status = send_sealed(socket->get(), request, secrets.of_client); !status.ok()) return status;
  auto answer = receive_sealed(socket->get(), secrets.of_server, timeout_ms);
  if (!answer.ok()) return answer.status();
  return Answered{std::move(socket.value()), std::move(answer.value())};
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
  Status status = send_all(socket->get(), std::span(&part, 1));
  if (status.ok()) status = send_text(socket->get(), credential.value());
  const auto answer = status.ok() ? receive_text(socket->get(), timeout_ms) : status;
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

Status Introduction::hear(int socket, const std::optional<Key>& key, bool munge, int timeout_ms) {
  std::string magic(4, '\0');
  pollfd wait{socket, POLLIN, 0};
  if (poll(&wait, 1, timeout_ms) <= 0 || recv(socket, magic.data(), 4, MSG_PEEK | MSG_WAITALL) != 4)
    return Status::error(OFFPATH_ERR_PERMISSION, "nobody says who he is");
  if (number_of(magic) != kMungeMagic) {
    if (!key) return Status::error(OFFPATH_ERR_PERMISSION, "who asks knows a key, and there is none here");
    Status status = accept_remote(socket, *key, timeout_ms, &purpose_, &secrets_);
    if (!status.ok() || purpose_ == Purpose::regions) return status;
    auto request = receive_sealed(socket, secrets_.of_client, timeout_ms);
    if (!request.ok()) return Status::error(OFFPATH_ERR_PERMISSION, "%s", request.status().text());
    request_ = std::move(request.value());
    return {};
  }
  if (!munge) return Status::error(OFFPATH_ERR_PERMISSION, "MUNGE's word is not taken here");
  Status status = receive_exactly(socket, magic.data(), magic.size(), timeout_ms);
  if (!status.ok()) return status;
  const auto credential = receive_text(socket, timeout_ms);
  const auto opened = credential.ok() ? munge_open(credential.value()) : credential.status();
  if (!opened.ok()) return Status::error(OFFPATH_ERR_PERMISSION, "%s", opened.status().text());
  if (opened->text.size() < kPurposeBytes + kNonce) return Status::error(OFFPATH_ERR_PERMISSION, "a request too short");
  purpose_ = static_cast<Purpose>(number_of(opened->text));
  if (purpose_ != Purpose::service && purpose_ != Purpose::probe)
    return Status::error(OFFPATH_ERR_PERMISSION, "who is known by MUNGE wants what only a key opens");
  nonce_ = opened->text.substr(kPurposeBytes, kNonce);
  request_ = opened->text.substr(kPurposeBytes + kNonce);
  user_ = opened->uid;
  return {};
}

Status Introduction::answer(int socket, const std::string& text) const {
  if (!user_) return send_sealed(socket, text, secrets_.of_server);
  const auto credential = munge_seal(nonce_ + text, *user_);
  return credential.ok() ? send_text(socket, credential.value()) : credential.status();
}

}  // namespace offpath::device
