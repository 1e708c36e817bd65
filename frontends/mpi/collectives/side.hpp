// SPDX-License-Identifier: BSD-3-Clause
// One side (send or receive) of an offloaded call: blocks of user memory, as the service gets them. What the service
// cannot work on in place (short ranges) goes through staging memory, one part of it per block.
//
// Threads: built by one thread, constant afterwards.
#pragma once

#include "collectives/arguments.hpp"
#include "types/datatype.hpp"

#include <mpi.h>
#include <offpath/offpath.h>

#include <cstdint>
#include <vector>

namespace offpath::mpi {

class Side {
 public:
  // Adds block number `index` of what the caller states. Blocks without data are left out where `peer` names whom they
  // are for. False: the arguments are wrong. `comm` returns errors. Inside. May throw bad_alloc.
  enum class Empty { leave_out, keep };
  bool add(const Stated& stated, int index, uint32_t peer, uint32_t tag, Empty empty, MPI_Comm comm);
  // Adds a block of plain bytes. False: there is no buffer.
  bool add_bytes(const void* buffer, uint64_t bytes);
  // Every block through staging memory: what lies in the buffer now is kept.
  void stage_all();
  // Copies the arrays (`entries` each) and holds the datatypes that `stated` leads to, and lets it lead to these.
  void keep(Stated* stated, int entries);

  uint64_t bytes() const { return bytes_; }
  uint64_t staging_bytes() const { return staging_bytes_; }
  bool staged() const { return staging_bytes_ > 0; }
  // MPI error codes; `comm` returns errors.
  int pack_into(std::byte* staging, MPI_Comm comm) const;
  int unpack_from(const std::byte* staging, MPI_Comm comm) const;
  // Appends the blocks, and the layouts they refer to. The layouts' ranges stay here.
  void describe(const std::byte* staging, std::vector<offpath_block_t>* blocks,
                std::vector<offpath_layout_t>* layouts) const;

 private:
  struct Block {
    uint32_t peer;
    uint32_t tag;
    uint32_t type;  // index into types_
    bool staged;
    uintptr_t address;  // of the first element
    int64_t elements;
    uint64_t bytes;
  };
  // Index of the type in types_, or a negative number.
  int64_t remember(MPI_Datatype type, MPI_Comm comm);
  void push(Block block);

  std::vector<HeldType> types_;
  std::vector<MPI_Datatype> given_;  // the caller's handles of types_
  std::vector<Block> blocks_;
  uint64_t bytes_ = 0;
  uint64_t staging_bytes_ = 0;
  std::vector<int> counts_;
  std::vector<int> displs_;
  std::vector<MPI_Aint> displs_bytes_;
  std::vector<MPI_Datatype> kept_types_;
};

}  // namespace offpath::mpi
