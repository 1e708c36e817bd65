// SPDX-License-Identifier: BSD-3-Clause
// One side (send or receive) of an exchange: `peers` blocks of user memory, as MPI describes them, and as the C API
// wants them (bytes). Where the datatype is not contiguous the bytes live in staging memory instead.
#pragma once

#include "datatype.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace offpath::mpi {

class Blocks {
 public:
  // Every peer the same count, one block after the other.
  void set_uniform(uintptr_t buffer, int count, MPI_Datatype type, const Layout& layout, int peers);
  // Count and displacement (in extents) per peer; the arrays are copied.
  void set_irregular(uintptr_t buffer, const int* counts, const int* displs, MPI_Datatype type, const Layout& layout,
                     int peers);

  enum class Staging { if_needed, always };
  // Keeps the datatype usable and makes staging memory: where the type is not contiguous, or always. MPI error code.
  int prepare(Staging staging);
  // Errors go to the handler of `comm`: one that returns them.
  int pack_into_staging(MPI_Comm comm);
  int unpack_from_staging(MPI_Comm comm) const;
  // Lets go of staging memory and datatype; what is left needs no native call to be destroyed.
  void release();
  // Leaves the staging memory to whoever may still write to it.
  void abandon_staging() { static_cast<void>(staging_.release()); }

  bool staged() const { return staging_ != nullptr; }
  uintptr_t buffer() const { return buffer_; }
  MPI_Datatype type() const { return type_.get(); }
  int count() const { return count_; }
  const int* counts() const { return counts_.data(); }
  const int* displs() const { return displs_.data(); }
  int64_t block_bytes(int peer) const { return elements(peer) * layout_.size_bytes; }
  int64_t total_bytes() const;

  // What the service works on: base address, and per peer bytes and displacement from it.
  void* service_base() const;
  void fill_service_arrays(std::vector<uint64_t>* bytes, std::vector<int64_t>* displs_bytes) const;

 private:
  int64_t elements(int peer) const { return irregular_ ? counts_[static_cast<size_t>(peer)] : count_; }
  // Of a block's first element, from buffer_.
  int64_t displacement(int peer) const;

  uintptr_t buffer_ = 0;
  bool irregular_ = false;
  int peers_ = 0;
  int count_ = 0;
  std::vector<int> counts_;
  std::vector<int> displs_;
  MPI_Datatype given_type_ = MPI_DATATYPE_NULL;
  HeldType type_;
  Layout layout_;
  std::unique_ptr<std::byte[]> staging_;
};

}  // namespace offpath::mpi
