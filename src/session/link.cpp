// SPDX-License-Identifier: BSD-3-Clause
#include "session/link.hpp"

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/hash.hpp"
#include "base/node.hpp"
#include "base/passing.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace offpath::session {

using base::Environment;
using base::Fd;
using base::Result;
using base::Status;

namespace {

std::string node_suffix() {
  char name[16];
  snprintf(name, sizeof(name), "-%08x.sock", static_cast<uint32_t>(base::node_key()));
  return name;
}

Result<std::string> checked_folder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0700) == 0) {
    chmod(folder.c_str(), 0700);  // whatever the umask: it stays for later jobs
  } else if (errno != EEXIST) {
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno,
                                "cannot create %.100s (the service's sockets live there). Set OFFPATH_RUNTIME_DIR",
                                folder.c_str());
  }
  struct stat info {};
  if (lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != getuid() ||
      (info.st_mode & 077) != 0) {
    return Status::error(OFFPATH_ERR_NO_SERVICE,
                         "%.100s is not a folder only its owner can use (others could pose as the service). Remove it, "
                         "or set OFFPATH_RUNTIME_DIR",
                         folder.c_str());
  }
  return folder;
}

// Whether nobody else may move what lies in it out of the way and put something else there.
bool is_trusted(const std::string& parent) {
  struct stat info {};
  if (stat(parent.c_str(), &info) != 0 || (info.st_uid != getuid() && info.st_uid != 0)) return false;
  return (info.st_mode & 022) == 0 || (info.st_mode & S_ISVTX) != 0;
}

}  // namespace

Result<std::string> runtime_folder() {
  if (getauxval(AT_SECURE) != 0) {
    return Status::error(OFFPATH_ERR_NO_SERVICE,
                         "the program has more rights than who started it (a service of that user would reach into it, "
                         "one of its own would run with them). Run it without");
  }
  const std::string chosen = Environment::text("OFFPATH_RUNTIME_DIR");
  if (!chosen.empty()) return checked_folder(chosen);
  const std::string xdg = Environment::text("XDG_RUNTIME_DIR");
  if (!xdg.empty() && is_trusted(xdg)) {  // su and sudo may have brought it from another user
    // A launcher may have brought the variable from another node, where that folder is.
    Result<std::string> folder = checked_folder(xdg + "/offpath");
    if (folder.ok()) return folder;
  }
  return checked_folder("/tmp/offpath-" + std::to_string(getuid()));
}

std::string socket_path(const std::string& folder, const uint8_t (&token)[OFFPATH_TOKEN_BYTES], For whom) {
  // The name must differ between jobs and must not give the token away.
  const uint64_t hash = base::hash_on(base::kHashOfNothing ^ base::node_key(), token);
  char name[32];
  snprintf(name, sizeof(name), "/%016llx", static_cast<unsigned long long>(hash));
  return folder + name + (whom == For::agents ? "-dpu" : "") + node_suffix();
}

namespace {

Result<sockaddr_un> make_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return Status::error(OFFPATH_ERR_NO_SERVICE,
                         "socket path of %zu characters is too long (limit %zu). Set "
                         "OFFPATH_RUNTIME_DIR to a shorter one",
                         path.size(), sizeof(address.sun_path) - 1);
  }
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

}  // namespace

Result<Fd> listen_at(const std::string& path) {
  auto address = make_address(path);
  if (!address.ok()) return address.status();
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.valid() || bind(fd.get(), reinterpret_cast<sockaddr*>(&address.value()), sizeof(sockaddr_un)) != 0 ||
      listen(fd.get(), 512) != 0) {
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot listen at %.100s", path.c_str());
  }
  return fd;
}

Result<Fd> connect_to(const std::string& path, int timeout_ms) {
  auto address = make_address(path);
  if (!address.ok()) return address.status();
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return Status::system_error(OFFPATH_ERR_STATE, errno, "cannot make a socket");
  const timeval patience{timeout_ms / 1000, timeout_ms % 1000 * 1000L};
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  int connected;
  do {
    connected = connect(fd.get(), reinterpret_cast<sockaddr*>(&address.value()), sizeof(sockaddr_un));
  } while (connected != 0 && errno == EINTR);
  if (connected != 0) {
    const auto code = errno == EAGAIN ? OFFPATH_ERR_STATE : OFFPATH_ERR_NO_SERVICE;
    return Status::system_error(code, errno, "no service at %.100s", path.c_str());
  }
  return fd;
}

Result<Fd> lock_folder(const std::string& folder, int timeout_ms) {
  constexpr timespec kNap{0, 2000000};
  Fd lock(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const uint64_t end_ns = base::clock_ns() + static_cast<uint64_t>(timeout_ms) * 1000000;
  // File systems without locks: so be it.
  while (flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
    if (base::clock_ns() >= end_ns) {
      return Status::error(OFFPATH_ERR_NO_SERVICE,
                           "another process holds the lock on %.100s for %d ms (it starts a service there, or is "
                           "stopped). End it, or set OFFPATH_RUNTIME_DIR",
                           folder.c_str(), timeout_ms);
    }
    nanosleep(&kNap, nullptr);
  }
  return lock;
}

void remove_dead_sockets(const std::string& folder) {
  const std::string suffix = node_suffix();
  DIR* const names = opendir(folder.c_str());
  if (names == nullptr) return;
  while (const dirent* entry = readdir(names)) {
    const std::string_view name = entry->d_name;
    if (!name.ends_with(suffix)) continue;
    const auto address = make_address(folder + "/" + entry->d_name);
    // Of another type than theirs: who lives refuses it unseen, as a wrong type.
    const Fd probe(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!address.ok() || !probe.valid()) continue;
    const int connected =
        connect(probe.get(), reinterpret_cast<const sockaddr*>(&address.value()), sizeof(sockaddr_un));
    if (connected != 0 && errno == ECONNREFUSED) unlink(address->sun_path);
  }
  closedir(names);
}

SocketFile::SocketFile(std::string path) : path_(std::move(path)) {
  struct stat info {};
  if (lstat(path_.c_str(), &info) != 0) return;
  inode_ = info.st_ino;
  born_s_ = info.st_ctim.tv_sec;
  born_ns_ = info.st_ctim.tv_nsec;
}

bool SocketFile::same_as(const SocketFile& other) const {
  return inode_ == other.inode_ && born_s_ == other.born_s_ && born_ns_ == other.born_ns_;
}

void SocketFile::remove() const {
  if (inode_ == 0) return;
  constexpr int kPatienceMs = 100;
  const auto lock = lock_folder(path_.substr(0, path_.rfind('/')), kPatienceMs);
  if (lock.ok() && same_as(SocketFile(path_))) unlink(path_.c_str());
}

OwnSocketName::OwnSocketName(int listening, std::string path) : path_(std::move(path)) {
  sockaddr_un address{};
  socklen_t length = sizeof(address) - 1;
  if (getsockname(listening, reinterpret_cast<sockaddr*>(&address), &length) != 0) return;
  made_at_ = address.sun_path;
  struct stat info {};
  if (lstat(made_at_.c_str(), &info) != 0) return;
  device_ = info.st_dev;
  inode_ = info.st_ino;
}

void OwnSocketName::remove() const {
  for (const std::string* name : {&path_, &made_at_}) {
    struct stat info {};
    const bool is_own = inode_ != 0 && lstat(name->c_str(), &info) == 0 && S_ISSOCK(info.st_mode) &&
                        info.st_dev == device_ && info.st_ino == inode_;
    if (is_own) unlink(name->c_str());
  }
}

Result<PeerCredentials> peer_credentials(int socket) {
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return Status::system_error(OFFPATH_ERR_PERMISSION, errno, "cannot tell who is at the other end of the socket");
  }
  return PeerCredentials{credentials.pid, credentials.uid};
}

Status send_message(int socket, const void* data, size_t bytes, int fd_to_pass) {
  const iovec part{const_cast<void*>(data), bytes};
  const ssize_t sent = base::send_passing(socket, {&part, 1}, {&fd_to_pass, fd_to_pass >= 0 ? 1U : 0U});
  if (sent != static_cast<ssize_t>(bytes)) {
    return Status::system_error(OFFPATH_ERR_SERVICE_LOST, errno, "cannot send on the local socket");
  }
  return {};
}

Result<Fd> receive_message(int socket, void* data, size_t bytes, int timeout_ms) {
  pollfd wait{socket, POLLIN, 0};
  int ready;
  do {
    ready = poll(&wait, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  if (ready == 0)
    return Status::error(OFFPATH_ERR_NO_SERVICE, "no answer on the local socket within %d ms", timeout_ms);
  Fd passed;
  const auto [got, flags] = base::receive_passing(socket, data, bytes, {&passed, 1});
  if (got > 0 && (flags & MSG_CTRUNC) != 0) return base::no_descriptor_left();
  if (got <= 0) return Status::error(OFFPATH_ERR_SERVICE_LOST, "the other side closed the local socket");
  if (got != static_cast<ssize_t>(bytes) || (flags & MSG_TRUNC) != 0) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "message of %zd bytes on the local socket, expected %zu", got, bytes);
  }
  return passed;
}

}  // namespace offpath::session
