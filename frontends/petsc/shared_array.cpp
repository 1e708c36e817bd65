// SPDX-License-Identifier: BSD-3-Clause
#include "petsc/shared_array.hpp"

#include "base/fd.hpp"
#include "petsc/job.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

namespace offpath::petsc {

struct SharedArray::Place {
  uint64_t address;
  uint64_t file_offset;
  uint64_t device, inode;  // of the file: process and descriptor may mean another one here
  int32_t process, descriptor;
  int32_t found;
};

SharedArray::SharedArray(SharedArray&& other) noexcept
    : begin_(other.begin_),
      bytes_(other.bytes_),
      own_offset_(other.own_offset_),
      own_bytes_(other.own_bytes_),
      leader_(other.leader_),
      mapped_(std::exchange(other.mapped_, false)) {}

SharedArray::~SharedArray() {
  if (mapped_) munmap(begin_, bytes_);
}

bool SharedArray::make(const Groups& groups, Executor* service, uint64_t own_bytes) {
  own_bytes_ = own_bytes;
  if (MPI_Exscan(&own_bytes, &own_offset_, 1, MPI_UINT64_T, MPI_SUM, groups.group) != MPI_SUCCESS) return false;
  if (groups.leads()) own_offset_ = 0;  // MPI leaves it undefined
  if (MPI_Allreduce(&own_bytes, &bytes_, 1, MPI_UINT64_T, MPI_SUM, groups.group) != MPI_SUCCESS) return false;
  bytes_ = std::max<uint64_t>(bytes_, 1);
  Place place{};
  if (groups.leads()) {
    begin_ = static_cast<uint8_t*>(service->allocate(bytes_));
    struct stat file {};
    place.address = reinterpret_cast<uintptr_t>(begin_);
    place.process = getpid();
    place.found = begin_ != nullptr &&
                  offpath_memory_file(job_session(), begin_, &place.descriptor, &place.file_offset) == OFFPATH_OK &&
                  fstat(place.descriptor, &file) == 0;
    place.device = file.st_dev;
    place.inode = file.st_ino;
  }
  if (MPI_Bcast(&place, sizeof(place), MPI_BYTE, 0, groups.group) != MPI_SUCCESS) return false;
  leader_ = place.address;
  const int own = place.found != 0 && (groups.leads() || map(place)) ? 1 : 0;
  int all = 0;
  return MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, groups.group) == MPI_SUCCESS && all == 1;
}

bool SharedArray::map(const Place& place) {
  const std::string path = "/proc/" + std::to_string(place.process) + "/fd/" + std::to_string(place.descriptor);
  const base::Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!file.valid() || fstat(file.get(), &info) != 0 || info.st_dev != place.device || info.st_ino != place.inode) {
    return false;
  }
  void* data =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), static_cast<off_t>(place.file_offset));
  if (data == MAP_FAILED) return false;
  begin_ = static_cast<uint8_t*>(data);
  mapped_ = true;
  return true;
}

bool SharedArray::owns(const void* address) const {
  const auto at = reinterpret_cast<uintptr_t>(address), first = reinterpret_cast<uintptr_t>(own());
  return at >= first && at - first <= own_bytes_;
}

}  // namespace offpath::petsc
