// SPDX-License-Identifier: BSD-3-Clause
// One side (send or receive) of an offloaded call: blocks of user memory, as the service gets them, or, for an
// irregular collective, its share of them; the other share goes natively, as a message per block. What the service
// cannot work on in place (short ranges) goes through staging memory, one part of it per block.
//
// Threads: built by one thread, constant afterwards.
#pragma once

#include "mpi/native/arguments.hpp"
#include "mpi/native/native_requests.hpp"
#include "mpi/types/datatype.hpp"

#include <mpi.h>
#include <offpath/offpath.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace offpath::mpi {

// How a block gets to the other side.
enum class Share : uint8_t { service, host };

// Which ranks.
using Chosen = std::function<bool(uint32_t peer)>;
inline bool all_peers(uint32_t) { return true; }

// Where block number `index` of the stated ones begins, elements of that extent.
uintptr_t address_of(const Stated& stated, int index, int64_t extent_bytes);

class Side {
 public:
  // Adds block number `index` of what the caller states. Blocks without data are left out where `peer` names whom they
  // are for. False: the arguments are wrong. `comm` returns errors. Inside. May throw bad_alloc.
  enum class Empty { leave_out, keep };
  bool add(const Stated& stated, int index, uint32_t peer, uint32_t tag, Empty empty, MPI_Comm comm);
  // Adds a block of plain bytes. False: there is no buffer.
  bool add_bytes(const void* buffer, uint64_t bytes);
  // Gives each block the share that share_of(its bytes) says. Both ends of a block must say the same.
  template <typename ShareOf>
  void divide(ShareOf&& share_of) {
    for (Block& block : blocks_) assign(&block, share_of(block.bytes));
    put_in_order();
  }
  // Every block through staging memory: what lies in the buffer now is kept.
  void stage_all();
  // Holds the datatypes of the blocks. MPI error code.
  int hold();
  // After hold(): copies the arrays (`entries` each) that `stated` leads to, and lets it lead to these and to the types
  // held.
  void keep(Stated* stated, int entries);

  // Of the service's share.
  uint64_t bytes() const { return bytes_; }
  bool uses_service() const { return served_blocks_ > 0; }
  size_t blocks() const { return blocks_.size(); }
  uint64_t staging_bytes() const { return staging_bytes_; }
  bool staged() const { return staging_bytes_ > 0; }
  // MPI error codes; `comm` returns errors.
  int pack_into(std::byte* staging, MPI_Comm comm) const;
  int unpack_from(const std::byte* staging, MPI_Comm comm) const;
  // Starts a message for each block of that share: to its peer, from staging memory where the block is staged; or from
  // its peer, into the user's memory. With those peers alone. `comm` returns errors.
  void send(Share share, const Chosen& peers, const std::byte* staging, int tag, MPI_Comm comm,
            NativeRequests* requests) const;
  void receive(Share share, const Chosen& peers, int tag, MPI_Comm comm, NativeRequests* requests) const;
  // Whether all blocks of that share are of those peers.
  bool all_from(Share share, const Chosen& peers) const;
  // What all its types are made of, if that is one thing.
  offpath_element_t made_of() const;
  // Appends the blocks of the service's share, and the layouts they refer to. The layouts' ranges stay here.
  void describe(const std::byte* staging, std::vector<offpath_block_t>* blocks,
                std::vector<offpath_layout_t>* layouts) const;

 private:
  struct Block {
    uint32_t peer;
    uint32_t tag;
    uint32_t type;  // index into types_
    bool staged;
    Share share;
    uintptr_t address;  // of the first element
    int64_t elements;
    uint64_t bytes;
  };
  // Index of the type in types_, or a negative number.
  int64_t remember(MPI_Datatype type, MPI_Comm comm);
  void push(Block block);
  void assign(Block* block, Share share);
  void put_in_order();

  std::vector<HeldType> types_;
  std::vector<MPI_Datatype> given_;  // the caller's handles of types_
  std::vector<Block> blocks_;
  size_t served_blocks_ = 0;
  uint64_t bytes_ = 0;
  uint64_t staging_bytes_ = 0;
  bool stages_all_ = false;
  std::vector<std::byte> counts_;
  std::vector<std::byte> displs_;
  std::vector<MPI_Aint> displs_bytes_;
  std::vector<MPI_Datatype> kept_types_;
};

}  // namespace offpath::mpi
