// SPDX-License-Identifier: BSD-3-Clause
#include "device/connect.hpp"

#include "base/bytes.hpp"

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
Status wrong_key() {
  return Status::error(
      OFFPATH_ERR_PERMISSION,
      "the other side does not know the key, or is no Offpath device service of this release with room for us. "
      "Give both the same key file");
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

seal::Security security_for(Purpose purpose, seal::Security wanted) {
  const bool hides = purpose != Purpose::regions || wanted == seal::Security::encrypt;
  return hides ? seal::Security::encrypt : seal::Security::auth;
}

Result<Connection> connect_remote(const DeviceEntry& entry, const Key& key, int timeout_ms, Purpose purpose) {
  const auto wanted = seal::wanted_security();
  if (!wanted.ok()) return wanted.status();
  const seal::Security security = security_for(purpose, wanted.value());
  auto socket = dial(entry, timeout_ms);
  if (!socket.ok()) return socket.status();
  const Line plain(socket->get());
  seal::Initiator handshake(seal::secret_for(seal::Use::device, key),
                            {static_cast<uint8_t>(purpose), security, {}, {}});
  seal::Words words = handshake.greet();
  while (handshake.stage() != seal::Stage::done) {
    const bool greets = handshake.stage() == seal::Stage::challenge;
    const iovec said{words.data(), words.size()};
    seal::Words heard(handshake.wants());
    Status status = plain.send(std::span(&said, 1));
    if (status.ok()) status = plain.receive(heard.data(), heard.size(), timeout_ms);
    // Who listens says nothing to a stranger, and closes.
    if (greets && status.code() == OFFPATH_ERR_SERVICE_LOST) return wrong_key();
    if (!status.ok()) return status;
    words = handshake.take(heard);
    if (handshake.stage() == seal::Stage::failed) return wrong_key();
  }
  return Connection(std::move(socket.value()), handshake.session(), security);
}

Status send_text(const Line& line, const std::string& text) {
  std::array<uint8_t, 4> head;
  ByteWriter(head.data()).number(static_cast<uint32_t>(text.size()));
  const iovec parts[] = {{head.data(), head.size()}, {const_cast<char*>(text.data()), text.size()}};
  return line.send(parts);
}

Result<std::string> receive_text(const Line& line, size_t most_bytes, int timeout_ms) {
  std::array<uint8_t, 4> head;
  if (const Status status = line.receive(head.data(), head.size(), timeout_ms); !status.ok()) return status;
  const auto bytes = ByteReader(head.data()).number<uint32_t>();
  if (bytes > most_bytes) return Status::error(OFFPATH_ERR_ARGUMENT, "a message of %u bytes", bytes);
  std::string text(bytes, '\0');
  if (const Status status = line.receive(text.data(), text.size(), timeout_ms); !status.ok()) return status;
  return text;
}

}  // namespace offpath::device
