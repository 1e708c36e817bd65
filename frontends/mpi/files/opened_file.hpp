// SPDX-License-Identifier: BSD-3-Clause
// A file that the program has opened, as we see it beside the native one: a descriptor of our own, the view, and how many of our
// transfers are under way. It lives as long as the native file is open, or a transfer is.
//
// Threads: any; view and agreement change in collective calls, in which no transfer begins.
#pragma once

#include "memory/file.hpp"
#include "mpi/files/view.hpp"
#include "mpi/native/handle_table.hpp"

#include <mpi.h>
#include <offpath/offpath.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>

namespace offpath::mpi {

// What MPI says of an error of the file system.
int file_error_code(int number);

enum class FileWay : uint8_t { write, read };
inline constexpr size_t kFileWays = 2;

// A split collective between its _begin and its _end.
struct Split {
  FileWay way;
  MPI_Request request;
};

class OpenedFile {
 public:
  // `ranks`: of those that have opened it; ours.
  OpenedFile(MPI_File handle, MPI_Comm ranks, int mode, base::Fd descriptor);
  ~OpenedFile() = default;
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;

  MPI_File handle() const { return handle_; }
  const memory::OpenFile& descriptor() const { return descriptor_; }
  const std::optional<View>& view() const { return view_; }

  // Transfers may go to the service as far as the file is concerned.
  bool may(FileWay way) const { return usable_ && view_.has_value() && allowed_[static_cast<size_t>(way)]; }
  // Whether its collective transfers are ours on all ranks.
  bool is_shared_out() const { return shared_out_; }
  // Collective: the view from now on, and what all ranks make of it. Inside. MPI error code.
  int set_view(std::optional<View> view);
  // The file is the library's alone from now on: atomic mode. On all ranks.
  void leave_to_library();

  // At the service; made known to it when it is first needed, and to the next one where that is lost, while another thread may still
  // post on the old one. nullptr: it cannot have it, or there is none now.
  std::shared_ptr<offpath_file_t> served();

  std::atomic<int>& under_way() { return under_way_; }
  // Waits until none of our transfers is.
  void settle();
  // Some of them write. The library, which knows of no such write, may find nothing to bring to the disk.
  void note_write() { wrote_.store(true, std::memory_order_relaxed); }
  // What they have written is on the disk. Settled. MPI error code.
  int sync();

  // Of the individual pointer: native calls that move it share it, as the library orders them; ours have it alone, and never wait for it.
  // A native call may run the file's error handler, which may use the file.
  std::shared_mutex& pointer_mutex() { return pointer_mutex_; }
  std::optional<Split> split;

  // Calls the file's error handler and returns `code`. Not Inside.
  int raise(int code) const;
  // Before the native file is closed. Inside.
  void close();

 private:
  const MPI_File handle_;
  MPI_Comm ranks_;
  const memory::OpenFile descriptor_;
  const std::array<bool, kFileWays> allowed_;
  bool usable_ = true;
  bool shared_out_ = false;
  std::optional<View> view_ = View{};
  std::mutex served_mutex_;
  const offpath_session_t* offered_to_ = nullptr;
  std::shared_ptr<offpath_file_t> served_;  // null: it was refused
  std::atomic<int> under_way_{0};
  std::atomic<bool> wrote_{false};
  std::shared_mutex pointer_mutex_;
};
using OpenedRef = std::shared_ptr<OpenedFile>;

struct FileCounts {
  std::array<std::atomic<uint64_t>, kFileWays> offloaded{}, offloaded_bytes{}, native{}, native_bytes{};
  std::atomic<uint64_t> again{0};  // done by the process, as the service could not
  std::atomic<uint64_t> failed{0};
  std::atomic<uint64_t> kept_native{0};  // files of which nothing goes to the service
};

class Files {
 public:
  // When the job has begun; the same on all ranks.
  void open();
  // At its end.
  void close();
  // The policy has something for the service.
  bool on() const { return on_.load(std::memory_order_acquire); }

  // After the library has opened it. False: on some rank it stays the library's, and so on all. Collective. Inside.
  bool adopt(MPI_Comm comm, const char* name, int mode, MPI_File file);
  // nullptr: not ours.
  OpenedRef find(MPI_File file) const;
  OpenedRef take(MPI_File file);

  FileCounts counts;

 private:
  // nullptr: its transfers stay native.
  OpenedRef enter(MPI_File file, MPI_Comm ranks, const char* name, int mode);

  mutable std::mutex mutex_;
  std::unordered_map<uintptr_t, OpenedRef> opened_;
  std::atomic<bool> on_{false};
};

extern Files opened_files;

}  // namespace offpath::mpi
