// SPDX-License-Identifier: BSD-3-Clause
// The arguments of all collectives in one form.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstring>

namespace offpath::mpi {

// An array of the caller's: ints, or what MPI's large-count functions take, of 64 bits.
class Numbers {
 public:
  Numbers() = default;
  template <typename Number>
  explicit Numbers(const Number* data) : data_(data), bytes_(sizeof(Number)) {
    static_assert(sizeof(Number) == sizeof(int32_t) || sizeof(Number) == sizeof(int64_t));
  }
  explicit operator bool() const { return data_ != nullptr; }
  int64_t operator[](int index) const { return bytes_ == sizeof(int32_t) ? at<int32_t>(index) : at<int64_t>(index); }
  const void* data() const { return data_; }
  // Of one number.
  size_t bytes() const { return bytes_; }
  // The same numbers at another place.
  Numbers moved_to(const void* data) const {
    Numbers moved = *this;
    moved.data_ = data;
    return moved;
  }

 private:
  // Not by a pointer to it: long and long long are two types.
  template <typename Number>
  int64_t at(int index) const {
    Number number;
    memcpy(&number, static_cast<const char*>(data_) + sizeof(Number) * static_cast<size_t>(index), sizeof(Number));
    return number;
  }

  const void* data_ = nullptr;
  size_t bytes_ = sizeof(int32_t);
};

// One side as the caller states it: blocks in one buffer. What a collective does not take stays as it is here.
struct Stated {
  const void* buffer = nullptr;
  int64_t count = 0;                       // of every block, or
  Numbers counts;                          // of each; then the blocks are not one behind the other but at
  Numbers displs;                          // so many extents, or bytes where each has a type of its own, or
  const MPI_Aint* displs_bytes = nullptr;  // so many bytes
  MPI_Datatype type = MPI_DATATYPE_NULL;   // of every block, or
  const MPI_Datatype* types = nullptr;     // of each
};

struct Arguments {
  Stated send;
  Stated recv;  // also the buffer of a broadcast, and count and type of reductions
  MPI_Op op = MPI_OP_NULL;
  int root = 0;
  bool large = false;  // of a function with large counts
};

}  // namespace offpath::mpi
