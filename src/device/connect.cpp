// SPDX-License-Identifier: BSD-3-Clause
#include "device/connect.hpp"

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "device/frames.hpp"

#include <sodium.h>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace offpath::device {

using base::ByteReader;
using base::ByteWriter;
using base::Fd;
using base::Result;
using base::Status;

namespace {

static_assert(sizeof(Key) == crypto_auth_KEYBYTES);
constexpr uint32_t kMagic = 0x4850464fU;  // "OFPH"
constexpr uint32_t kVersion = 1;
constexpr size_t kNonceBytes = 32;

// First message of each side.
struct Challenge {
  static constexpr size_t kBytes = 8 + kNonceBytes;
  std::array<uint8_t, kBytes> bytes;

  Challenge() {
    ByteWriter writer(bytes.data());
    writer.number(kMagic);
    writer.number(kVersion);
    base::fill_random(bytes.data() + 8, kNonceBytes);
  }
};

Status check(const Challenge& challenge) {
  ByteReader reader(challenge.bytes.data());
  if (reader.number<uint32_t>() != kMagic) {
    return Status::error(OFFPATH_ERR_PERMISSION, "the other side is no Offpath device service");
  }
  if (const auto version = reader.number<uint32_t>(); version != kVersion) {
    return Status::error(OFFPATH_ERR_PERMISSION, "the other side speaks version %u, not %u. Install the same release",
                         version, kVersion);
  }
  return {};
}

using Proof = std::array<uint8_t, crypto_auth_BYTES>;

// Over both challenges, so neither side can use the other to answer for it; the role keeps reflections away.
std::array<uint8_t, 1 + 2 * Challenge::kBytes> claim(char role, const Challenge& client, const Challenge& server) {
  std::array<uint8_t, 1 + 2 * Challenge::kBytes> text{};
  text[0] = static_cast<uint8_t>(role);
  memcpy(text.data() + 1, client.bytes.data(), Challenge::kBytes);
  memcpy(text.data() + 1 + Challenge::kBytes, server.bytes.data(), Challenge::kBytes);
  return text;
}

Proof prove(char role, const Challenge& client, const Challenge& server, const Key& key) {
  const auto text = claim(role, client, server);
  Proof proof;
  crypto_auth(proof.data(), text.data(), text.size(), key.data());
  return proof;
}

bool proven(const Proof& proof, char role, const Challenge& client, const Challenge& server, const Key& key) {
  const auto text = claim(role, client, server);
  return crypto_auth_verify(proof.data(), text.data(), text.size(), key.data()) == 0;
}

template <typename Bytes>
Status send(int socket, const Bytes& bytes) {
  const iovec part{const_cast<uint8_t*>(bytes.data()), bytes.size()};
  return send_all(socket, std::span(&part, 1));
}

Status wrong_key() {
  return Status::error(OFFPATH_ERR_PERMISSION, "the other side does not know the key. Give both the same key file");
}

// Of the addresses of the name, the first that accepts a connection within the time.
Result<Fd> dial(const DeviceEntry& entry, int timeout_ms) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(entry.host.c_str(), std::to_string(entry.port).c_str(), &hints, &found);
  if (error != 0) return Status::error(OFFPATH_ERR_NO_SERVICE, "%s", gai_strerror(error));
  int number = ECONNREFUSED;
  Fd connected;
  for (const addrinfo* address = found; address != nullptr && !connected.valid(); address = address->ai_next) {
    Fd socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (connect(socket.get(), address->ai_addr, address->ai_addrlen) != 0 && errno != EINPROGRESS) {
      number = errno;
      continue;
    }
    pollfd wait{socket.get(), POLLOUT, 0};
    socklen_t length = sizeof(number);
    number = ETIMEDOUT;
    if (poll(&wait, 1, timeout_ms) > 0) getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &number, &length);
    if (number == 0) connected = std::move(socket);
  }
  freeaddrinfo(found);
  if (!connected.valid()) return Status::system_error(OFFPATH_ERR_NO_SERVICE, number, "cannot connect");
  fcntl(connected.get(), F_SETFL, fcntl(connected.get(), F_GETFL) & ~O_NONBLOCK);
  const int one = 1;
  setsockopt(connected.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  return connected;
}

}  // namespace

Result<Key> read_key(const std::string& path) {
  constexpr size_t kMinBytes = 16;
  constexpr size_t kMaxBytes = 4096;
  Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!file.valid() || fstat(file.get(), &info) != 0) {
    return Status::system_error(OFFPATH_ERR_ARGUMENT, errno, "cannot read the key file %.100s", path.c_str());
  }
  if ((info.st_mode & 077) != 0) {
    return Status::error(OFFPATH_ERR_PERMISSION,
                         "others may read the key file %.100s (with it they can run code on the DPU). chmod 600 it",
                         path.c_str());
  }
  std::array<uint8_t, kMaxBytes> bytes;
  const ssize_t got = read(file.get(), bytes.data(), bytes.size());
  if (got < static_cast<ssize_t>(kMinBytes)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "the key file %.100s has less than %zu bytes. Fill it from /dev/urandom",
                         path.c_str(), kMinBytes);
  }
  Key key;
  crypto_generichash(key.data(), key.size(), bytes.data(), static_cast<size_t>(got), nullptr, 0);
  return key;
}

Result<Fd> connect_remote(const DeviceEntry& entry, const Key& key, int timeout_ms) {
  auto socket = dial(entry, timeout_ms);
  if (!socket.ok()) return socket.status();
  const int fd = socket->get();
  Challenge client, server;
  Proof proof;
  Status status = send(fd, client.bytes);
  if (status.ok()) status = receive_exactly(fd, server.bytes.data(), server.bytes.size(), timeout_ms);
  if (status.ok()) status = check(server);
  if (status.ok()) status = receive_exactly(fd, proof.data(), proof.size(), timeout_ms);
  if (status.ok() && !proven(proof, 'S', client, server, key)) status = wrong_key();
  if (status.ok()) status = send(fd, prove('C', client, server, key));
  if (!status.ok()) return status;
  return std::move(socket.value());
}

Status accept_remote(int socket, const Key& key, int timeout_ms) {
  Challenge client, server;
  Proof proof;
  Status status = receive_exactly(socket, client.bytes.data(), client.bytes.size(), timeout_ms);
  if (status.ok()) status = check(client);
  if (status.ok()) status = send(socket, server.bytes);
  if (status.ok()) status = send(socket, prove('S', client, server, key));
  if (status.ok()) status = receive_exactly(socket, proof.data(), proof.size(), timeout_ms);
  if (status.ok() && !proven(proof, 'C', client, server, key)) status = wrong_key();
  return status.ok() ? status : Status::error(OFFPATH_ERR_PERMISSION, "%s", status.text());
}

}  // namespace offpath::device
