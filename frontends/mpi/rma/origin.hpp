// SPDX-License-Identifier: BSD-3-Clause
// The elements of one-sided communication, as calls state them, and the origin's memory that holds them.
#pragma once

#include "mpi/rma/offloaded_window.hpp"

#include <mpi.h>
#include <offpath/offpath.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

namespace offpath::mpi {

// Elements at the origin.
struct Local {
  const void* address = nullptr;
  int64_t count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

// The elements of one side, once their type is known.
struct Elements {
  TypeRef type;
  std::optional<Footprint> footprint;
  int64_t count = 0;
  uint64_t bytes = 0;

  const DataType* basic() const { return type->predefined ? type.get() : type->basic.get(); }
  bool empty() const { return type == nullptr || count == 0 || type->size_bytes == 0; }
  // MPI error classes.
  int find(MPI_Datatype handle, int64_t elements, MPI_Comm comm);
  int measure(MPI_Datatype handle, bool whole);
  // They get so much data, from the first byte on: as many of them as it needs, the last one perhaps in part.
  int cut(uint64_t data);
  // The last one is in part.
  bool is_cut() const {
    return footprint && footprint->size_bytes > 0 && bytes % static_cast<uint64_t>(footprint->size_bytes) != 0;
  }
};

// The origin's memory on one side, as the service gets it: in place, by its layout, or through staging memory.
class OriginMemory {
 public:
  enum class Way { sent, fetched };
  // `one_piece`: the operation is not cut. MPI error class.
  int prepare(const Local& local, const Elements& elements, Way way, bool one_piece);
  // The part that begins at data byte `done`. Appends to `layouts` what it refers to.
  offpath_block_t block(uint64_t done, uint64_t bytes, offpath_layout_t* layouts, uint32_t* layouts_count) const;
  // nullptr: no staging memory that has to outlive the call.
  const std::shared_ptr<Staged>& staged() const { return staged_; }
  bool stays_in_use(uint64_t bytes) const { return layout_ != nullptr || bytes > OFFPATH_REMOTE_INLINE_BYTES; }

 private:
  const std::byte* address_ = nullptr;
  const Footprint* layout_ = nullptr;
  std::shared_ptr<Staged> staged_;
  std::array<std::byte, OFFPATH_REMOTE_INLINE_BYTES> short_;
};

}  // namespace offpath::mpi
