// SPDX-License-Identifier: BSD-3-Clause
// Calls that transfer. Nonblocking ones and split collectives go to the service where the policy says so; all others are the
// library's, but what writes waits for our transfers of the file first: a library may read what lies between the stretches that it
// writes, and write that back.
#include "mpi/files/opened_file.hpp"
#include "mpi/files/transfer.hpp"
#include "mpi/job/job.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/handlers.hpp"

#include <exception>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <type_traits>

namespace offpath::mpi {
namespace {

struct Access {
  FileWay way;
  std::optional<MPI_Offset> offset;  // in etypes; nothing: the individual pointer
  void* buffer;
  int64_t count;
  MPI_Datatype type;
};

uint64_t bytes_of(const Access& access) {
  MPI_Count size = 0;
  if (access.count <= 0 || access.type == MPI_DATATYPE_NULL || native.Type_size_x(access.type, &size) != MPI_SUCCESS ||
      size <= 0) {
    return 0;
  }
  return static_cast<uint64_t>(access.count) * static_cast<uint64_t>(size);
}

bool is_for_service(FileWay way, uint64_t bytes) {
  const auto row = way == FileWay::write ? policy::Collective::write : policy::Collective::read;
  return bytes > 0 && job.policy().choose(row, bytes, job.nodes()).path == policy::Path::dpu;
}

// Of the view. The pointer is the library's. Inside.
bool find_first(const OpenedFile& file, const Access& access, uint64_t* first) {
  MPI_Offset offset = access.offset.value_or(0);
  if (!access.offset && native.File_get_position(file.handle(), &offset) != MPI_SUCCESS) return false;
  return offset >= 0 && !__builtin_mul_overflow(static_cast<uint64_t>(offset), file.view()->etype_bytes, first);
}

// Ours find the pointer and set it in two steps, between which no other thread may move it.
std::shared_lock<std::shared_mutex> share_pointer(OpenedFile& file, bool moves) {
  std::shared_lock lock(file.pointer_mutex(), std::defer_lock);
  if (moves) lock.lock();
  return lock;
}

// The request of a transfer that the service has; false: it goes natively. May throw bad_alloc.
bool offload(const OpenedRef& file, const Access& access, MPI_Request* request) {
  const uint64_t bytes = bytes_of(access);
  if (!file->may(access.way) || !is_for_service(access.way, bytes)) return false;
  const uint64_t etype_bytes = file->view()->etype_bytes;
  if (bytes % etype_bytes != 0) return false;
  const Inside inside;
  const TypeRef type = find_type(access.type, job.control());
  if (type == nullptr) return false;
  // Not waited for: another thread may be in a collective call, which ends when other ranks have made it, too.
  std::unique_lock lock(file->pointer_mutex(), std::defer_lock);
  if (!access.offset && !lock.try_lock()) return false;
  Wanted wanted{0, access.buffer, access.count, access.type};
  if (!find_first(*file, access, &wanted.first)) return false;
  auto transfer = std::make_unique<FileTransfer>(file, access.way);
  if (!transfer->post(wanted, type)) return false;
  if (offloader.submit(std::move(transfer), request) != MPI_SUCCESS) return false;
  if (!access.offset) native.File_seek(file->handle(), static_cast<MPI_Offset>(bytes / etype_bytes), MPI_SEEK_CUR);
  const auto way = static_cast<size_t>(access.way);
  opened_files.counts.offloaded[way].fetch_add(1, std::memory_order_relaxed);
  opened_files.counts.offloaded_bytes[way].fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

// False, too, without memory for it: the library does it.
bool try_to_offload(const OpenedRef& file, const Access& access, MPI_Request* request) {
  try {
    return offload(file, access, request);
  } catch (const std::exception&) {
    return false;
  }
}

// nullptr: not ours, or a call from inside the library.
OpenedRef ours(MPI_File file) { return Inside::here() ? nullptr : opened_files.find(file); }

// Before the library does it.
void leave_to_library(OpenedFile& file, const Access& access) {
  if (access.way == FileWay::write) file.settle();
  const auto way = static_cast<size_t>(access.way);
  opened_files.counts.native[way].fetch_add(1, std::memory_order_relaxed);
  opened_files.counts.native_bytes[way].fetch_add(bytes_of(access), std::memory_order_relaxed);
}

// A collective one is the library's on all ranks of the file, or on none. `alone`, `natively`: the call of the library as an
// independent one, and as it is.
int begin(MPI_File handle, const Access& access, bool collective, MPI_Request* request, auto&& alone, auto&& natively) {
  const OpenedRef file = ours(handle);
  if (file == nullptr) return natively();
  const bool is_our_share = !collective || file->is_shared_out();
  if (is_our_share && try_to_offload(file, access, request)) return MPI_SUCCESS;
  leave_to_library(*file, access);
  const auto lock = share_pointer(*file, !access.offset);
  return is_our_share ? alone(request) : natively();
}

// Between its _begin and its _end the file has its request.
int begin_split(MPI_File handle, const Access& access, auto&& alone, auto&& natively) {
  const OpenedRef file = ours(handle);
  if (file == nullptr || file->split) return natively();
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = begin(handle, access, true, &request, alone, natively);
  if (code == MPI_SUCCESS && request != MPI_REQUEST_NULL) file->split = Split{access.way, request};
  return code;
}

int end_split(MPI_File handle, FileWay way, MPI_Status* status, auto&& natively) {
  const OpenedRef file = ours(handle);
  if (file == nullptr || !file->split || file->split->way != way) return natively();
  MPI_Request request = file->split->request;
  file->split.reset();
  return handlers::Wait(&request, status);
}

// ---- handlers, by what their prototypes look like ----------------------------------------------------------------------

template <typename Buffer>
Access access_of(std::optional<MPI_Offset> offset, Buffer* buffer, int64_t count, MPI_Datatype type) {
  const FileWay way = std::is_const_v<Buffer> ? FileWay::write : FileWay::read;
  return {way, offset, const_cast<void*>(static_cast<const void*>(buffer)), count, type};
}

// `member`: the call; `alone`: the independent one that does the same for this rank.
template <auto member, auto alone = member>
struct Begin;
template <typename Buffer, typename Count, auto alone,
          int (*Native::*member)(MPI_File, MPI_Offset, Buffer*, Count, MPI_Datatype, MPI_Request*)>
struct Begin<member, alone> {
  static int call(MPI_File file, MPI_Offset offset, Buffer* buffer, Count count, MPI_Datatype type,
                  MPI_Request* request) {
    return begin(
        file, access_of(offset, buffer, count, type), member != alone, request,
        [&](MPI_Request* its) { return (native.*alone)(file, offset, buffer, count, type, its); },
        [&] { return (native.*member)(file, offset, buffer, count, type, request); });
  }
};
template <typename Buffer, typename Count, auto alone,
          int (*Native::*member)(MPI_File, Buffer*, Count, MPI_Datatype, MPI_Request*)>
struct Begin<member, alone> {
  static int call(MPI_File file, Buffer* buffer, Count count, MPI_Datatype type, MPI_Request* request) {
    return begin(
        file, access_of({}, buffer, count, type), member != alone, request,
        [&](MPI_Request* its) { return (native.*alone)(file, buffer, count, type, its); },
        [&] { return (native.*member)(file, buffer, count, type, request); });
  }
};
template <typename Buffer, typename Count, auto alone,
          int (*Native::*member)(MPI_File, MPI_Offset, Buffer*, Count, MPI_Datatype)>
struct Begin<member, alone> {
  static int call(MPI_File file, MPI_Offset offset, Buffer* buffer, Count count, MPI_Datatype type) {
    return begin_split(
        file, access_of(offset, buffer, count, type),
        [&](MPI_Request* its) { return (native.*alone)(file, offset, buffer, count, type, its); },
        [&] { return (native.*member)(file, offset, buffer, count, type); });
  }
};
template <typename Buffer, typename Count, auto alone, int (*Native::*member)(MPI_File, Buffer*, Count, MPI_Datatype)>
struct Begin<member, alone> {
  static int call(MPI_File file, Buffer* buffer, Count count, MPI_Datatype type) {
    return begin_split(
        file, access_of({}, buffer, count, type),
        [&](MPI_Request* its) { return (native.*alone)(file, buffer, count, type, its); },
        [&] { return (native.*member)(file, buffer, count, type); });
  }
};

template <auto member>
struct End;
template <typename Buffer, int (*Native::*member)(MPI_File, Buffer*, MPI_Status*)>
struct End<member> {
  static int call(MPI_File file, Buffer* buffer, MPI_Status* status) {
    const FileWay way = std::is_const_v<Buffer> ? FileWay::write : FileWay::read;
    return end_split(file, way, status, [&] { return (native.*member)(file, buffer, status); });
  }
};

// The library's. `waits`: for ours. `moves`: the individual pointer.
template <auto member, bool waits = true, bool moves = false>
struct Stays;
template <bool waits, bool moves, typename... Arguments, int (*Native::*member)(MPI_File, Arguments...)>
struct Stays<member, waits, moves> {
  static int call(MPI_File handle, Arguments... arguments) {
    const OpenedRef file = ours(handle);
    if (file == nullptr) return (native.*member)(handle, arguments...);
    if (waits) file->settle();
    const auto lock = share_pointer(*file, moves);
    return (native.*member)(handle, arguments...);
  }
};

// The library's, and what of ours it does not know of.
int sync_file(MPI_File handle) {
  const OpenedRef file = ours(handle);
  if (file == nullptr) return native.File_sync(handle);
  file->settle();
  const int own = file->sync();
  const int code = native.File_sync(handle);
  return code == MPI_SUCCESS && own != MPI_SUCCESS ? file->raise(own) : code;
}

}  // namespace

namespace handlers {

// With counts of int, and with large ones.
#define OFFPATH_BEGIN(name, alone)                                                 \
  const decltype(Native::name) name = &Begin<&Native::name, &Native::alone>::call; \
  const decltype(Native::name##_c) name##_c = &Begin<&Native::name##_c, &Native::alone##_c>::call;
#define OFFPATH_BEGINS(way)                     \
  OFFPATH_BEGIN(File_i##way, File_i##way)       \
  OFFPATH_BEGIN(File_i##way##_all, File_i##way) \
  OFFPATH_BEGIN(File_##way##_all_begin, File_i##way)
OFFPATH_BEGINS(write)
OFFPATH_BEGINS(write_at)
OFFPATH_BEGINS(read)
OFFPATH_BEGINS(read_at)
#undef OFFPATH_BEGINS
#undef OFFPATH_BEGIN

#define OFFPATH_ENDS(name) const decltype(Native::name) name = &End<&Native::name>::call;
OFFPATH_ENDS(File_write_at_all_end)
OFFPATH_ENDS(File_read_at_all_end)
OFFPATH_ENDS(File_write_all_end)
OFFPATH_ENDS(File_read_all_end)
#undef OFFPATH_ENDS

#define OFFPATH_STAYS(name, ...) \
  const decltype(Native::name) name = &Stays<&Native::name __VA_OPT__(, ) __VA_ARGS__>::call;
OFFPATH_STAYS(File_seek, false, true)
OFFPATH_STAYS(File_get_size)
OFFPATH_STAYS(File_set_size)
OFFPATH_STAYS(File_preallocate)
#define OFFPATH_BOTH_STAY(name, ...)             \
  OFFPATH_STAYS(name __VA_OPT__(, ) __VA_ARGS__) \
  OFFPATH_STAYS(name##_c __VA_OPT__(, ) __VA_ARGS__)
OFFPATH_BOTH_STAY(File_read, false, true)
OFFPATH_BOTH_STAY(File_read_all, false, true)
OFFPATH_BOTH_STAY(File_write, true, true)
OFFPATH_BOTH_STAY(File_write_at)
OFFPATH_BOTH_STAY(File_write_all, true, true)
OFFPATH_BOTH_STAY(File_write_at_all)
OFFPATH_BOTH_STAY(File_write_shared)
OFFPATH_BOTH_STAY(File_write_ordered)
OFFPATH_BOTH_STAY(File_write_ordered_begin)
OFFPATH_BOTH_STAY(File_iwrite_shared)
#undef OFFPATH_BOTH_STAY
const decltype(Native::File_sync) File_sync = &sync_file;
#undef OFFPATH_STAYS

}  // namespace handlers
}  // namespace offpath::mpi
