// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/rma/origin.hpp"

namespace offpath::mpi {
namespace {

// Shorter ranges on average, and more of them, cost the service more than a copy through staging memory.
constexpr int64_t kMinRangeBytes = 512;
constexpr size_t kMaxLayoutRanges = 4096;

}  // namespace

int Elements::find(MPI_Datatype handle, int64_t elements, MPI_Comm comm) {
  if (elements < 0) return MPI_ERR_COUNT;
  count = elements;
  type = find_type(handle, comm);
  return type == nullptr ? MPI_ERR_TYPE : MPI_SUCCESS;
}

int Elements::measure(MPI_Datatype handle, bool whole) {
  footprint = footprint_of(handle, type, whole ? basic() : nullptr);
  if (!footprint) return MPI_ERR_TYPE;
  int64_t data = 0;
  if (__builtin_mul_overflow(count, footprint->size_bytes, &data)) return MPI_ERR_COUNT;
  bytes = static_cast<uint64_t>(data);
  return MPI_SUCCESS;
}

int Elements::cut(uint64_t data) {
  if (data > bytes) return MPI_ERR_TRUNCATE;
  if (data < bytes) count = data == 0 ? 0 : footprint->elements_of(data);
  bytes = data;
  return MPI_SUCCESS;
}

int OriginMemory::prepare(const Local& local, const Elements& elements, Way way, bool one_piece) {
  const Footprint& footprint = *elements.footprint;
  const auto user = reinterpret_cast<uintptr_t>(local.address);
  if (footprint.contiguous(elements.count)) {
    address_ =
        reinterpret_cast<const std::byte*>(user + static_cast<uintptr_t>(footprint.ranges->front().offset_bytes));
    return address_ == nullptr ? MPI_ERR_BUFFER : MPI_SUCCESS;
  }
  const size_t ranges = footprint.ranges->size();
  const bool is_short = way == Way::sent && elements.bytes <= short_.size();
  const bool pays = footprint.size_bytes >= kMinRangeBytes * static_cast<int64_t>(ranges) && ranges <= kMaxLayoutRanges;
  if (one_piece && pays && !is_short) {
    address_ = reinterpret_cast<const std::byte*>(user);
    layout_ = &footprint;
    return MPI_SUCCESS;
  }
  std::byte* memory = short_.data();
  if (!is_short) {
    staged_ = std::make_shared<Staged>();
    if (!staged_->memory.take(elements.bytes)) return MPI_ERR_NO_MEM;
    memory = staged_->memory.get();
  }
  address_ = memory;
  if (way == Way::sent) {
    gather(footprint, user, elements.bytes, memory);
  } else {
    staged_->footprint = footprint;
    staged_->address = user;
    staged_->bytes = elements.bytes;
  }
  return MPI_SUCCESS;
}

offpath_block_t OriginMemory::block(uint64_t done, uint64_t bytes, offpath_layout_t* layouts,
                                    uint32_t* layouts_count) const {
  offpath_block_t block{};
  block.address = address_ + done;
  block.bytes = bytes;
  if (layout_ != nullptr) {
    layouts[*layouts_count] = {static_cast<uint64_t>(layout_->size_bytes), layout_->extent_bytes,
                               layout_->ranges->data(), static_cast<uint32_t>(layout_->ranges->size())};
    block.layout = ++*layouts_count;
  }
  return block;
}

}  // namespace offpath::mpi
