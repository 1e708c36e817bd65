// SPDX-License-Identifier: BSD-3-Clause
#include "device/handover.hpp"

#include "base/environment.hpp"
#include "base/passing.hpp"
#include "session/link.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

extern char** environ;

namespace offpath::device {

using base::Fd;
using base::Result;
using base::Status;

namespace {

constexpr uint32_t kVersion = 2;
constexpr size_t kDescriptors = 4;
constexpr off_t kMaxEnvironmentBytes = 4 << 20;

// Without what would be loaded into the executor in front of its own libraries.
Result<Fd> environment_file() {
  Fd file(memfd_create("offpath-environment", MFD_CLOEXEC));
  if (!file.valid()) return Status::system_error(OFFPATH_ERR_STATE, errno, "cannot pass the environment");
  std::string text;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, "LD_PRELOAD=", 11) != 0) text.append(*entry).push_back('\0');
  }
  if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return Status::system_error(OFFPATH_ERR_STATE, errno, "cannot pass the environment");
  }
  return file;
}

Fd open_or_null(int fd) {
  Fd copy(fcntl(fd, F_DUPFD_CLOEXEC, 3));
  return copy.valid() ? std::move(copy) : Fd(open("/dev/null", O_RDWR | O_CLOEXEC));
}

}  // namespace

Result<std::string> device_socket_path() {
  const auto folder = session::runtime_folder();
  if (!folder.ok()) return folder.status();
  const std::string what = "devices" + base::Environment::text("OFFPATH_SERVICE_CORES");
  uint8_t name[OFFPATH_TOKEN_BYTES] = {};
  for (size_t i = 0; i < what.size(); ++i)
    name[i % sizeof(name)] = static_cast<uint8_t>(name[i % sizeof(name)] * 31 + what[i]);
  return session::socket_path(folder.value(), name);
}

Result<Fd> connect_local(const std::string& path) {
  auto socket = session::connect_to(path);
  if (!socket.ok()) return socket.status();
  const auto environment = environment_file();
  if (!environment.ok()) return environment.status();
  const Fd output = open_or_null(STDOUT_FILENO);
  const Fd error = open_or_null(STDERR_FILENO);
  const Fd folder(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!output.valid() || !error.valid() || !folder.valid())
    return Status::system_error(OFFPATH_ERR_STATE, errno, "cannot pass stdout, stderr or the working folder");
  const int descriptors[kDescriptors] = {output.get(), error.get(), folder.get(), environment->get()};
  uint32_t version = kVersion;
  const iovec part{&version, sizeof(version)};
  if (base::send_passing(socket->get(), {&part, 1}, descriptors) != sizeof(version)) {
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot ask the device service for an executor");
  }
  return std::move(socket.value());
}

Result<Handover> receive_handover(int socket, int timeout_ms) {
  pollfd wait{socket, POLLIN, 0};
  if (poll(&wait, 1, timeout_ms) <= 0) return Status::error(OFFPATH_ERR_NO_SERVICE, "a client asked for nothing");
  uint32_t version = 0;
  std::array<Fd, kDescriptors> descriptors;
  const auto [got, flags] = base::receive_passing(socket, &version, sizeof(version), descriptors);
  if (got > 0 && (flags & MSG_CTRUNC) != 0) return base::no_descriptor_left();
  if (got != sizeof(version) || version != kVersion || !descriptors.back().valid()) {
    return Status::error(OFFPATH_ERR_NO_SERVICE,
                         "program and device service are of different releases. Install them together");
  }
  Handover handover;
  handover.output = std::move(descriptors[0]);
  handover.error = std::move(descriptors[1]);
  handover.folder = std::move(descriptors[2]);
  struct stat info {};
  if (fstat(descriptors[3].get(), &info) != 0 || info.st_size > kMaxEnvironmentBytes) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "the environment is longer than %lld bytes",
                         static_cast<long long>(kMaxEnvironmentBytes));
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  if (pread(descriptors[3].get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return Status::system_error(OFFPATH_ERR_ARGUMENT, errno, "cannot read the environment");
  }
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\0', begin), text.size());
    handover.environment.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return handover;
}

}  // namespace offpath::device
