// SPDX-License-Identifier: BSD-3-Clause
// Puts and gets to another process's part of a window, as messages between the proxies: a header with the data of short
// puts, the data of long ones, and an answer. The target's memory is written by MPI itself; no copy is made on the way.
//
// Progress thread only.
#pragma once

#include "mpi/native/native.hpp"

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace offpath::mpi::regions {

struct Header {
  uint64_t epoch;  // fences before it
  int64_t displacement;
  uint64_t bytes;
  int32_t reply_tag;
  uint8_t puts;     // else it gets
  uint8_t to_host;  // the side it is for
  uint8_t inlined;  // the data follows the header
  uint8_t reserved;
};

inline constexpr int kHeaderTag = 0;
inline constexpr int kDataTags = 16383;  // 1..: data; the answer to a put has this much more
inline constexpr size_t kMessageBytes = 1024;
inline constexpr size_t kInlineBytes = kMessageBytes - sizeof(Header);
using Message = std::array<std::byte, kMessageBytes>;

Header header_of(const Message& message);

// The origin's half.
class Outgoing {
 public:
  Outgoing(bool puts, bool to_host, int target, int64_t displacement, std::byte* data, uint64_t bytes,
           std::function<void(int)> done);
  void start(MPI_Comm comm, uint64_t epoch, int tag);
  // True: it is over, and `done` was called.
  bool advance();
  void give_up() { done_(MPI_ERR_OTHER); }

 private:
  int target_;
  Header header_{};
  std::byte* data_;
  std::function<void(int)> done_;
  Message message_{};
  int32_t answer_ = MPI_SUCCESS;
  std::array<MPI_Request, 3> requests_{MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

// The target's half. `place`: where the bytes are, nullptr: the header asks for something that is not there.
class Incoming {
 public:
  Incoming(const Message& message, int origin, std::byte* place) : message_(message), origin_(origin), place_(place) {}
  void start(MPI_Comm comm);
  bool advance();

 private:
  void answer_put();

  Message message_;
  int origin_;
  std::byte* place_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int32_t answer_ = MPI_SUCCESS;
  bool receiving_ = false;
  std::vector<std::byte> discarded_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace offpath::mpi::regions
