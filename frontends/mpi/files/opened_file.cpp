// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/files/opened_file.hpp"

#include "mpi/job/job.hpp"
#include "mpi/job/waiting.hpp"
#include "mpi/lanes/communicators.hpp"
#include "mpi/lanes/new_lane.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/errors_return.hpp"
#include "mpi/native/native.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string_view>
#include <utility>

namespace offpath::mpi {

Files opened_files;

namespace {

constexpr size_t kMostOpen = 64;

// Of file systems on which descriptors of two processes of a machine see the same bytes, whatever other machines do (statfs).
constexpr unsigned long kCoherent[] = {
    0xEF53,      // ext2 to ext4
    0x58465342,  // XFS
    0x9123683E,  // Btrfs
    0x01021994,  // tmpfs
    0x794C7630,  // overlayfs
    0xF2F52010,  // F2FS
    0x2FC12FC1,  // ZFS
    0x0BD00BD0,  // Lustre
    0x47504653,  // GPFS
    0x19830326,  // BeeGFS
};

// Without the prefix by which a program chooses a library's driver; empty: a driver that does more than POSIX calls, or, in Open MPI,
// either a prefix or a part of the name, as the user has chosen.
std::string_view path_of(std::string_view name) {
  const size_t colon = name.substr(0, name.find('/')).find(':');
  if (colon == std::string_view::npos) return name;
#ifndef OPEN_MPI
  if (name.starts_with("ufs:")) return name.substr(colon + 1);
#endif
  return {};
}

// The program's own descriptors come first.
bool leaves_room(int descriptor) {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && static_cast<rlim_t>(descriptor) < limit.rlim_cur / 2;
}

base::Fd open_beside(const char* name, int mode) {
  const std::string path(path_of(name));
  const bool is_near = offpath_session_shares_memory(job.session()) != 0;
  if (!is_near || path.empty() || (mode & (MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND)) != 0) return {};
  const int access = (mode & MPI_MODE_RDWR) != 0 ? O_RDWR : (mode & MPI_MODE_WRONLY) != 0 ? O_WRONLY : O_RDONLY;
  base::Fd fd(open(path.c_str(), access | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  struct statfs system {};
  const bool good = fd.valid() && leaves_room(fd.get()) && fstat(fd.get(), &about) == 0 && S_ISREG(about.st_mode) &&
                    fstatfs(fd.get(), &system) == 0 &&
                    std::find(std::begin(kCoherent), std::end(kCoherent),
                              static_cast<unsigned long>(system.f_type) & 0xFFFFFFFF) != std::end(kCoherent);
  return good ? std::move(fd) : base::Fd();
}

}  // namespace

int file_error_code(int number) {
  switch (number) {
    case ENOSPC:
      return MPI_ERR_NO_SPACE;
    case EDQUOT:
      return MPI_ERR_QUOTA;
    case EROFS:
      return MPI_ERR_READ_ONLY;
    case EACCES:
    case EPERM:
      return MPI_ERR_ACCESS;
    case EFAULT:
      return MPI_ERR_BUFFER;
    case ENOMEM:
      return MPI_ERR_NO_MEM;
    default:
      return MPI_ERR_IO;
  }
}

OpenedFile::OpenedFile(MPI_File handle, MPI_Comm ranks, int mode, base::Fd descriptor)
    : handle_(handle),
      ranks_(ranks),
      descriptor_(std::move(descriptor)),
      allowed_{(mode & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0, (mode & (MPI_MODE_RDONLY | MPI_MODE_RDWR)) != 0} {}

int OpenedFile::set_view(std::optional<View> view) {
  view_ = std::move(view);
  int mine = usable_ && view_ ? 1 : 0, all = 0;
  const int code = native.Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, ranks_);
  shared_out_ = code == MPI_SUCCESS && all == 1;
  return code;
}

void OpenedFile::leave_to_library() { usable_ = shared_out_ = false; }

std::shared_ptr<offpath_file_t> OpenedFile::served() {
  if (job.go_on() != OFFPATH_OK) return nullptr;
  std::lock_guard lock(served_mutex_);
  offpath_session_t* const session = job.session();
  if (std::exchange(offered_to_, session) == session) return served_;
  served_.reset();
  offpath_file_t* opened = nullptr;
  if (offpath_file_open(session, descriptor_.get(), &opened, nullptr) == OFFPATH_OK)
    served_ = {opened, &offpath_file_close};
  return served_;
}

void OpenedFile::settle() {
  if (under_way_.load(std::memory_order_acquire) == 0) return;
  const WaitTimer timer;
  Waiter waiter;
  while (under_way_.load(std::memory_order_acquire) != 0) {
    offloader.progress();
    if (under_way_.load(std::memory_order_acquire) != 0) waiter.pause();
  }
}

int OpenedFile::sync() {
  if (!wrote_.exchange(false, std::memory_order_relaxed)) return MPI_SUCCESS;
  const base::ErrnoGuard guard;
  while (fsync(descriptor_.get()) != 0) {
    if (errno != EINTR) return file_error_code(errno);
  }
  return MPI_SUCCESS;
}

int OpenedFile::raise(int code) const {
  native.File_call_errhandler(handle_, code);
  return code;
}

void OpenedFile::close() {
  served_.reset();
  if (ranks_ != MPI_COMM_NULL) native.Comm_free(&ranks_);
}

// ---- all of them ------------------------------------------------------------------------------------------------------

void Files::open() {
  const uint32_t nodes = job.nodes();
  const bool any =
      job.policy().offloads(policy::Collective::write, nodes) || job.policy().offloads(policy::Collective::read, nodes);
  on_.store(any, std::memory_order_release);
}

void Files::close() {
  on_.store(false, std::memory_order_release);
  std::lock_guard lock(mutex_);
  opened_.clear();
}

bool Files::adopt(MPI_Comm comm, const char* name, int mode, MPI_File file) {
  if (!is_of_this_world(comm)) return false;  // others may have no part in this, or know nothing of it
  // Not a duplicate, which would call what the program has attached to the communicator.
  MPI_Comm ranks = MPI_COMM_NULL;
  {
    const ErrorsReturn errors_return(comm);
    if (native.Comm_split(comm, 0, 0, &ranks) != MPI_SUCCESS) return false;
  }
  native.Comm_set_errhandler(ranks, MPI_ERRORS_RETURN);
  OpenedRef opened;
  try {
    opened = enter(file, ranks, name, mode);
  } catch (const std::exception& problem) {
    say_cannot("a file", problem);
  }
  if (all_have(ranks, opened != nullptr) && opened->set_view(View{}) == MPI_SUCCESS) return true;
  take(file);
  native.Comm_free(&ranks);  // libraries have two thousand
  return false;
}

OpenedRef Files::enter(MPI_File file, MPI_Comm ranks, const char* name, int mode) {
  size_t open = 0;
  {
    std::lock_guard lock(mutex_);
    open = opened_.size();
  }
  base::Fd descriptor = open < kMostOpen ? open_beside(name, mode) : base::Fd();
  if (!descriptor.valid()) return nullptr;
  auto opened = std::make_shared<OpenedFile>(file, ranks, mode, std::move(descriptor));
  std::lock_guard lock(mutex_);
  opened_.insert_or_assign(handle_key(file), opened);
  return opened;
}

OpenedRef Files::find(MPI_File file) const {
  if (!on()) return nullptr;
  std::lock_guard lock(mutex_);
  const auto found = opened_.find(handle_key(file));
  return found == opened_.end() ? nullptr : found->second;
}

OpenedRef Files::take(MPI_File file) {
  std::lock_guard lock(mutex_);
  auto found = opened_.extract(handle_key(file));
  return found.empty() ? nullptr : std::move(found.mapped());
}

}  // namespace offpath::mpi
