// SPDX-License-Identifier: BSD-3-Clause
// What the device library (device/) and the proxy in the host process (proxy/) say to each other: one upcall per MPI
// call (device/upcall.h), its arguments and its result. Both sides are little endian with 64-bit pointers; fields have
// fixed widths. What comes from a region is checked by the proxy.
//
// Handles: a value below kPredefined names a predefined object (its row in names.def); any other is the host's own
// handle, which a region got as a variable, or the proxy's name of a window.
#pragma once

#include "device/upcall.h"

#include <cstdint>

namespace offpath::regions {

// 'M', 'P', version: no other upcall has it.
inline constexpr uint32_t kUpcallCode = 0x4d500001;

enum class Mpi : uint32_t { openmpi = 1, mpich = 2, standard = 3 };

inline constexpr uint64_t kPredefined = 256;
inline constexpr uint64_t kUnknownName = kPredefined - 1;  // a predefined object that regions cannot use
inline constexpr uint64_t kCommWorld = 1;
inline constexpr uint64_t kCommSelf = 2;

enum class Call : uint32_t {
  comm_size = 1,  // also tells the own rank
  comm_set_info,  // flag: this side's messages cross over
  abort,          // peer: the error code
  send,           // flag: synchronous
  recv,           // the buffer is input and output: a short message leaves the rest as it was
  iprobe,
  // Collectives. peer: the root; flag: in place, then input and output are the same buffer.
  barrier,
  bcast,
  allreduce,
  alltoall,
  allgather,
  // Windows. The memory is an input and, in a fence, an output too where the host cannot view it.
  win_create,    // address, bytes, count: displacement unit
  win_set_info,  // flag
  win_fence,
  win_free,
  put,
  get,
};

// What the key REMOTE_DEST_HETERO says.
inline constexpr char kCrossKey[] = "REMOTE_DEST_HETERO";
enum class Crossing : int32_t { unsaid = 0, on = 1, off = 2 };

struct Arguments {
  Call call;
  Mpi mpi;
  uint64_t handle;  // communicator or window
  uint64_t type;
  uint64_t operation;
  int64_t count;
  uint64_t address;
  uint64_t bytes;
  int64_t displacement;
  int32_t peer;
  int32_t tag;
  int32_t flag;  // see Call
  int32_t reserved;
};

// The first output of every upcall.
struct Result {
  int32_t error;   // an MPI error class
  int32_t source;  // of a message
  int32_t tag;
  int32_t rank;
  uint64_t bytes;    // of a message
  uint64_t value;    // comm_size: the size; iprobe: whether there is one; win_create: the window
  int32_t shadowed;  // win_create: the host keeps a copy of the memory, which fences bring up to date
  int32_t reserved;
};

static_assert(sizeof(Arguments) == 80 && sizeof(Result) == 40);

}  // namespace offpath::regions
