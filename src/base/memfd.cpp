// SPDX-License-Identifier: BSD-3-Clause
#include "base/memfd.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace offpath::base {

namespace {
constexpr int kFixedSize = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
}

Result<Memfd> Memfd::create(const char* name, size_t bytes) { return create_with(name, bytes, kFixedSize); }

Result<Memfd> Memfd::create_read_only(const char* name, size_t bytes) {
  return create_with(name, bytes, kFixedSize | F_SEAL_FUTURE_WRITE);
}

Result<Memfd> Memfd::create_with(const char* name, size_t bytes, int seals) {
  // A file-size limit below ours would kill the process with SIGXFSZ inside ftruncate.
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes) {
    return Status::error(OFFPATH_ERR_NO_MEMORY,
                         "file size limit of %llu bytes is too small for %zu bytes of shared memory. Raise 'ulimit -f'",
                         static_cast<unsigned long long>(limit.rlim_cur), bytes);
  }
  Fd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return Status::system_error(OFFPATH_ERR_NO_MEMORY, errno, "cannot create shared memory");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return Status::system_error(OFFPATH_ERR_NO_MEMORY, errno, "cannot size shared memory to %zu bytes", bytes);
  }
  auto memory = map(std::move(fd), bytes);
  if (memory.ok() && fcntl(memory->fd(), F_ADD_SEALS, seals) != 0) {
    return Status::system_error(OFFPATH_ERR_NO_MEMORY, errno, "cannot seal shared memory");
  }
  return memory;
}

Result<Memfd> Memfd::adopt(Fd fd, size_t expected_bytes) {
  struct stat info {};
  if (fstat(fd.get(), &info) != 0 || static_cast<size_t>(info.st_size) != expected_bytes) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "shared memory does not have the announced %zu bytes", expected_bytes);
  }
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "shared memory is not sealed against shrinking");
  }
  return map(std::move(fd), expected_bytes);
}

Result<Memfd> Memfd::map(Fd fd, size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) {
    const int number = errno;
    rlimit limit{};
    if (number == ENOMEM && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
      return Status::error(OFFPATH_ERR_NO_MEMORY,
                           "address space limit of %llu bytes is too small for %zu bytes of shared memory. Raise "
                           "'ulimit -v'",
                           static_cast<unsigned long long>(limit.rlim_cur), bytes);
    }
    return Status::system_error(OFFPATH_ERR_NO_MEMORY, number, "cannot map %zu bytes of shared memory", bytes);
  }
  Memfd memory;
  memory.fd_ = std::move(fd);
  memory.data_ = static_cast<uint8_t*>(data);
  memory.bytes_ = bytes;
  memory.steady_ = Steady(data, bytes, Steady::Pages::may_change);
  return memory;
}

Memfd::Memfd(Memfd&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      steady_(std::move(other.steady_)) {}

Memfd& Memfd::operator=(Memfd&& other) noexcept {
  if (this != &other) {
    unmap();
    fd_ = std::move(other.fd_);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    steady_ = std::move(other.steady_);
  }
  return *this;
}

Memfd::~Memfd() { unmap(); }

void Memfd::keep_first(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  bytes = (bytes + page - 1) / page * page;
  if (data_ == nullptr || bytes >= bytes_) return;
  madvise(data_ + bytes, bytes_ - bytes, MADV_REMOVE);  // the file stays as long as it is mapped
  steady_ = {};
  munmap(data_ + bytes, bytes_ - bytes);
  bytes_ = bytes;
  steady_ = Steady(data_, bytes_, Steady::Pages::may_change);
  fd_.reset();
}

void Memfd::unmap() { unmap_but({}); }

void Memfd::unmap_but(std::span<const Stretch> kept) {
  uint8_t* at = std::exchange(data_, nullptr);
  if (at == nullptr) return;
  steady_ = {};
  uint8_t* const end = at + bytes_;
  for (const Stretch& stretch : kept) {
    if (at < stretch.data) munmap(at, static_cast<size_t>(stretch.data - at));
    at = stretch.data + stretch.bytes;
  }
  if (at < end) munmap(at, static_cast<size_t>(end - at));
}

}  // namespace offpath::base
