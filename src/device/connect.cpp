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
#include <vector>

namespace offpath::device {

using base::ByteReader;
using base::ByteWriter;
using base::Fd;
using base::Result;
using base::Status;

namespace {

static_assert(sizeof(Key) == crypto_auth_KEYBYTES);
constexpr uint32_t kVersion = 1;
constexpr size_t kNonceBytes = 32;
constexpr uint32_t kMaxSealedBytes = 16 << 10;
constexpr uint8_t kOnlyNonce[crypto_secretbox_NONCEBYTES] = {};
static_assert(sizeof(Key) == crypto_secretbox_KEYBYTES);

// First message of each side.
struct Challenge {
  static constexpr size_t kBytes = 8 + kNonceBytes;
  std::array<uint8_t, kBytes> bytes;

  explicit Challenge(Purpose purpose) {
    ByteWriter writer(bytes.data());
    writer.number(static_cast<uint32_t>(purpose));
    writer.number(kVersion);
    base::fill_random(bytes.data() + 8, kNonceBytes);
  }
};

Result<Purpose> purpose_of(const Challenge& challenge) {
  ByteReader reader(challenge.bytes.data());
  const auto purpose = static_cast<Purpose>(reader.number<uint32_t>());
  if (purpose != Purpose::regions && purpose != Purpose::service && purpose != Purpose::probe) {
    return Status::error(OFFPATH_ERR_PERMISSION, "the other side is no Offpath device service");
  }
  if (const auto version = reader.number<uint32_t>(); version != kVersion) {
    return Status::error(OFFPATH_ERR_PERMISSION, "the other side speaks version %u, not %u. Install the same release",
                         version, kVersion);
  }
  return purpose;
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

Secrets secrets_of(const Challenge& client, const Challenge& server, const Key& key) {
  Secrets secrets;
  for (const auto& [role, secret] : {std::pair{'c', &secrets.of_client}, std::pair{'s', &secrets.of_server}}) {
    const auto text = claim(role, client, server);
    crypto_generichash(secret->data(), secret->size(), text.data(), text.size(), key.data(), key.size());
  }
  return secrets;
}

Status wrong_key() {
  return Status::error(OFFPATH_ERR_PERMISSION, "the other side does not know the key. Give both the same key file");
}

}  // namespace

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

Result<Fd> connect_remote(const DeviceEntry& entry, const Key& key, int timeout_ms, Purpose purpose, Secrets* secrets) {
  auto socket = dial(entry, timeout_ms);
  if (!socket.ok()) return socket.status();
  const int fd = socket->get();
  Challenge client(purpose), server(purpose);
  Proof proof;
  Status status = send(fd, client.bytes);
  if (status.ok()) status = receive_exactly(fd, server.bytes.data(), server.bytes.size(), timeout_ms);
  if (status.ok()) status = purpose_of(server).status();
  if (status.ok()) status = receive_exactly(fd, proof.data(), proof.size(), timeout_ms);
  if (status.ok() && !proven(proof, 'S', client, server, key)) status = wrong_key();
  if (status.ok()) status = send(fd, prove('C', client, server, key));
  if (!status.ok()) return status;
  if (secrets != nullptr) *secrets = secrets_of(client, server, key);
  return std::move(socket.value());
}

Status accept_remote(int socket, const Key& key, int timeout_ms, Purpose* purpose, Secrets* secrets) {
  Challenge client(Purpose::regions), server(Purpose::regions);
  Proof proof;
  Status status = receive_exactly(socket, client.bytes.data(), client.bytes.size(), timeout_ms);
  if (status.ok()) {
    const auto wanted = purpose_of(client);
    status = wanted.status();
    if (status.ok() && purpose == nullptr && wanted.value() != Purpose::regions) {
      status = Status::error(OFFPATH_ERR_PERMISSION, "the client wants what this side does not do");
    }
    if (status.ok() && purpose != nullptr) *purpose = wanted.value();
  }
  if (status.ok()) status = send(socket, server.bytes);
  if (status.ok()) status = send(socket, prove('S', client, server, key));
  if (status.ok()) status = receive_exactly(socket, proof.data(), proof.size(), timeout_ms);
  if (status.ok() && !proven(proof, 'C', client, server, key)) status = wrong_key();
  if (status.ok() && secrets != nullptr) *secrets = secrets_of(client, server, key);
  return status.ok() ? status : Status::error(OFFPATH_ERR_PERMISSION, "%s", status.text());
}

Status send_sealed(int socket, const std::string& text, const Key& secret) {
  std::vector<uint8_t> frame(4 + crypto_secretbox_MACBYTES + text.size());
  ByteWriter(frame.data()).number(static_cast<uint32_t>(text.size()));
  // No two messages have one secret, so the nonce is nothing to choose.
  crypto_secretbox_easy(frame.data() + 4, reinterpret_cast<const uint8_t*>(text.data()), text.size(), kOnlyNonce,
                        secret.data());
  return send(socket, frame);
}

Result<std::string> receive_sealed(int socket, const Key& secret, int timeout_ms) {
  std::array<uint8_t, 4> head;
  if (const Status status = receive_exactly(socket, head.data(), head.size(), timeout_ms); !status.ok()) return status;
  const auto bytes = ByteReader(head.data()).number<uint32_t>();
  if (bytes > kMaxSealedBytes) return Status::error(OFFPATH_ERR_ARGUMENT, "a sealed message of %u bytes", bytes);
  std::vector<uint8_t> box(crypto_secretbox_MACBYTES + bytes);
  std::string text(bytes, '\0');
  if (const Status status = receive_exactly(socket, box.data(), box.size(), timeout_ms); !status.ok()) return status;
  if (crypto_secretbox_open_easy(reinterpret_cast<uint8_t*>(text.data()), box.data(), box.size(), kOnlyNonce,
                                 secret.data()) != 0) {
    return Status::error(OFFPATH_ERR_PERMISSION, "a sealed message was changed on its way");
  }
  return text;
}

}  // namespace offpath::device
