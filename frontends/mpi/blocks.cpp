// SPDX-License-Identifier: BSD-3-Clause
#include "blocks.hpp"

#include <new>

namespace offpath::mpi {

void Blocks::set_uniform(uintptr_t buffer, int count, MPI_Datatype type, const Layout& layout, int peers) {
  buffer_ = buffer;
  irregular_ = false;
  peers_ = peers;
  count_ = count;
  given_type_ = type;
  layout_ = layout;
}

void Blocks::set_irregular(uintptr_t buffer, const int* counts, const int* displs, MPI_Datatype type,
                           const Layout& layout, int peers) {
  buffer_ = buffer;
  irregular_ = true;
  peers_ = peers;
  counts_.assign(counts, counts + peers);
  displs_.assign(displs, displs + peers);
  given_type_ = type;
  layout_ = layout;
}

int Blocks::prepare(Staging staging) {
  if (const int code = type_.hold(given_type_, layout_); code != MPI_SUCCESS) return code;
  if (staging == Staging::if_needed && layout_.contiguous) return MPI_SUCCESS;
  staging_.reset(new (std::nothrow) std::byte[static_cast<size_t>(total_bytes()) + 1]);
  return staging_ == nullptr ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

void Blocks::release() {
  staging_.reset();
  type_.release();
}

int64_t Blocks::displacement(int peer) const {
  const int64_t extents = irregular_ ? displs_[static_cast<size_t>(peer)] : int64_t{count_} * peer;
  return extents * layout_.extent_bytes;
}

int64_t Blocks::total_bytes() const {
  int64_t total = 0;
  for (int peer = 0; peer < peers_; ++peer) total += block_bytes(peer);
  return total;
}

int Blocks::pack_into_staging(MPI_Comm comm) {
  std::byte* packed = staging_.get();
  for (int peer = 0; peer < peers_; ++peer) {
    const uintptr_t address = buffer_ + static_cast<uintptr_t>(displacement(peer));
    if (const int code = pack(address, elements(peer), type_.get(), layout_, packed, comm); code != MPI_SUCCESS) {
      return code;
    }
    packed += block_bytes(peer);
  }
  return MPI_SUCCESS;
}

int Blocks::unpack_from_staging(MPI_Comm comm) const {
  const std::byte* packed = staging_.get();
  for (int peer = 0; peer < peers_; ++peer) {
    const uintptr_t address = buffer_ + static_cast<uintptr_t>(displacement(peer));
    if (const int code = unpack(packed, address, elements(peer), type_.get(), layout_, comm); code != MPI_SUCCESS) {
      return code;
    }
    packed += block_bytes(peer);
  }
  return MPI_SUCCESS;
}

void* Blocks::service_base() const {
  if (staged()) return staging_.get();
  return reinterpret_cast<void*>(buffer_ + static_cast<uintptr_t>(layout_.offset_bytes));
}

void Blocks::fill_service_arrays(std::vector<uint64_t>* bytes, std::vector<int64_t>* displs_bytes) const {
  bytes->resize(static_cast<size_t>(peers_));
  displs_bytes->resize(static_cast<size_t>(peers_));
  int64_t packed = 0;
  for (int peer = 0; peer < peers_; ++peer) {
    const size_t i = static_cast<size_t>(peer);
    (*bytes)[i] = static_cast<uint64_t>(block_bytes(peer));
    (*displs_bytes)[i] = staged() ? packed : displacement(peer);
    packed += block_bytes(peer);
  }
}

}  // namespace offpath::mpi
