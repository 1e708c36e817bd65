// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/calls/side.hpp"

#include "mpi/native/elements.hpp"
#include "mpi/native/native.hpp"

#include <algorithm>
#include <climits>

namespace offpath::mpi {
namespace {

// From the buffer.
int64_t displacement(const Stated& stated, int index, int64_t extent_bytes) {
  if (stated.displs_bytes != nullptr) return stated.displs_bytes[index];
  if (!stated.displs) return stated.count * index * extent_bytes;
  return stated.displs[index] * (stated.types == nullptr ? extent_bytes : 1);
}

void copy_array(std::vector<std::byte>* copy, Numbers* array, int entries) {
  if (!*array) return;
  const auto* from = static_cast<const std::byte*>(array->data());
  copy->assign(from, from + static_cast<size_t>(entries) * array->bytes());
  *array = array->moved_to(copy->data());
}

// Sends elements from memory in which they lie as bytes, one after the other. MPI error code.
int send_bytes(const std::byte* from, int64_t elements, int64_t size_bytes, int peer, int tag, MPI_Comm comm,
               MPI_Request* request) {
  if (size_bytes > INT_MAX) return MPI_ERR_COUNT;
  MPI_Datatype element = MPI_DATATYPE_NULL;
  int code = native.Type_contiguous(static_cast<int>(size_bytes), MPI_BYTE, &element);
  if (code != MPI_SUCCESS) return code;
  code = native.Type_commit(&element);
  if (code == MPI_SUCCESS) {
    const Elements all(elements, element);
    code = all.code();
    if (code == MPI_SUCCESS) code = native.Isend(from, all.count(), all.type(), peer, tag, comm, request);
  }
  native.Type_free(&element);
  return code;
}

}  // namespace

uintptr_t address_of(const Stated& stated, int index, int64_t extent_bytes) {
  return reinterpret_cast<uintptr_t>(stated.buffer) + static_cast<uintptr_t>(displacement(stated, index, extent_bytes));
}

int64_t Side::remember(MPI_Datatype type, MPI_Comm comm) {
  // The usual call has one type, or few in turns.
  constexpr size_t kLookBack = 8;
  for (size_t i = given_.size(); i > 0 && given_.size() - i < kLookBack; --i) {
    if (given_[i - 1] == type) return static_cast<int64_t>(i - 1);
  }
  TypeRef found = find_type(type, comm);
  if (found == nullptr) return -1;
  types_.emplace_back(type, std::move(found));
  given_.push_back(type);
  return static_cast<int64_t>(types_.size() - 1);
}

void Side::push(Block block) {
  ++served_blocks_;
  bytes_ += block.bytes;
  if (block.staged) staging_bytes_ += block.bytes;
  blocks_.push_back(block);
}

void Side::assign(Block* block, Share share) {
  if (share == Share::service) return;
  block->share = share;
  --served_blocks_;
  bytes_ -= block->bytes;
  // The native library knows how to work on any type.
  if (block->staged) staging_bytes_ -= block->bytes;
  block->staged = false;
}

void Side::put_in_order() {
  // By tag, for the messages between two ranks, which meet in the order in which they are started.
  const auto by_tag = [](const Block& one, const Block& other) { return one.tag < other.tag; };
  if (!std::is_sorted(blocks_.begin(), blocks_.end(), by_tag)) std::stable_sort(blocks_.begin(), blocks_.end(), by_tag);
}

bool Side::add(const Stated& stated, int index, uint32_t peer, uint32_t tag, Empty empty, MPI_Comm comm) {
  const int64_t elements = stated.counts ? stated.counts[index] : stated.count;
  if (elements < 0) return false;
  // MPI looks at the type of a block without elements only where all blocks have that type.
  if (elements == 0 && stated.types != nullptr && empty == Empty::leave_out) return true;
  const int64_t type_index = remember(stated.types == nullptr ? stated.type : stated.types[index], comm);
  if (type_index < 0) return false;
  const DataType& type = *types_[static_cast<size_t>(type_index)];
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(elements, type.size_bytes, &bytes)) return false;
  if (bytes == 0 && empty == Empty::leave_out) return true;
  const uintptr_t address = address_of(stated, index, type.extent_bytes);
  // No buffer: MPI_BOTTOM looks the same, but what is displaced from there lies somewhere.
  if (bytes > 0 && address == 0 && type.predefined) return false;
  const bool staged = type.form == Form::packed && !as_run(type, address, elements);
  push({peer, tag, static_cast<uint32_t>(type_index), staged, Share::service, address, elements, bytes});
  return true;
}

bool Side::add_bytes(const void* buffer, uint64_t bytes) {
  if (bytes > 0 && buffer == nullptr) return false;
  const int64_t type_index = remember(MPI_BYTE, MPI_COMM_NULL);
  push({0, 0, static_cast<uint32_t>(type_index), false, Share::service, reinterpret_cast<uintptr_t>(buffer),
        static_cast<int64_t>(bytes), bytes});
  return true;
}

void Side::stage_all() {
  stages_all_ = true;
  staging_bytes_ = 0;
  for (Block& block : blocks_) {
    block.staged = true;
    staging_bytes_ += block.bytes;
  }
}

int Side::hold() {
  int code = MPI_SUCCESS;
  for (auto type = types_.begin(); type != types_.end() && code == MPI_SUCCESS; ++type) code = type->hold();
  return code;
}

void Side::keep(Stated* stated, int entries) {
  const MPI_Datatype* given = stated->types;
  copy_array(&counts_, &stated->counts, entries);
  copy_array(&displs_, &stated->displs, entries);
  if (stated->displs_bytes != nullptr) {
    displs_bytes_.assign(stated->displs_bytes, stated->displs_bytes + entries);
    stated->displs_bytes = displs_bytes_.data();
  }
  const auto held = [this](MPI_Datatype type, MPI_Datatype otherwise) {
    const auto found = std::find(given_.begin(), given_.end(), type);
    return found == given_.end() ? otherwise : types_[static_cast<size_t>(found - given_.begin())].handle();
  };
  stated->type = held(stated->type, stated->type);
  if (given == nullptr) return;
  // The type of an empty block may be anything, and gone tomorrow: bytes then.
  kept_types_.resize(static_cast<size_t>(entries));
  for (int i = 0; i < entries; ++i) kept_types_[static_cast<size_t>(i)] = held(given[i], MPI_BYTE);
  stated->types = kept_types_.data();
}

int Side::pack_into(std::byte* staging, MPI_Comm comm) const {
  for (const Block& block : blocks_) {
    if (!block.staged) continue;
    const int code = pack(types_[block.type], block.address, block.elements, staging, comm);
    if (code != MPI_SUCCESS) return code;
    staging += block.bytes;
  }
  return MPI_SUCCESS;
}

int Side::unpack_from(const std::byte* staging, MPI_Comm comm) const {
  for (const Block& block : blocks_) {
    if (!block.staged) continue;
    const int code = unpack(types_[block.type], staging, block.address, block.elements, comm);
    if (code != MPI_SUCCESS) return code;
    staging += block.bytes;
  }
  return MPI_SUCCESS;
}

bool Side::all_from(Share share, const Chosen& peers) const {
  return std::all_of(blocks_.begin(), blocks_.end(),
                     [&](const Block& block) { return block.share != share || peers(block.peer); });
}

void Side::send(Share share, const Chosen& peers, const std::byte* staging, int tag, MPI_Comm comm,
                NativeRequests* requests) const {
  for (const Block& block : blocks_) {
    const std::byte* const staged = staging;
    if (block.staged) staging += block.bytes;
    if (block.share != share || !peers(block.peer)) continue;
    const HeldType& type = types_[block.type];
    const auto peer = static_cast<int>(block.peer);
    requests->start([&](MPI_Request* request) {
      if (stages_all_) return send_bytes(staged, block.elements, type->size_bytes, peer, tag, comm, request);
      const Elements all(block.elements, type.handle());
      if (all.code() != MPI_SUCCESS) return all.code();
      return native.Isend(reinterpret_cast<const void*>(block.address), all.count(), all.type(), peer, tag, comm,
                          request);
    });
  }
}

void Side::receive(Share share, const Chosen& peers, int tag, MPI_Comm comm, NativeRequests* requests) const {
  for (const Block& block : blocks_) {
    if (block.share != share || !peers(block.peer)) continue;
    requests->start([&](MPI_Request* request) {
      const Elements all(block.elements, types_[block.type].handle());
      if (all.code() != MPI_SUCCESS) return all.code();
      return native.Irecv(reinterpret_cast<void*>(block.address), all.count(), all.type(), static_cast<int>(block.peer),
                          tag, comm, request);
    });
  }
}

offpath_element_t Side::made_of() const {
  if (types_.empty()) return OFFPATH_ELEMENT_NONE;
  const offpath_element_t first = types_.front()->made_of();
  const bool alike =
      std::all_of(types_.begin(), types_.end(), [first](const HeldType& type) { return type->made_of() == first; });
  return alike ? first : OFFPATH_ELEMENT_NONE;
}

void Side::describe(const std::byte* staging, std::vector<offpath_block_t>* blocks,
                    std::vector<offpath_layout_t>* layouts) const {
  std::vector<uint32_t> layout_of(types_.size());
  blocks->reserve(blocks->size() + served_blocks_);
  for (const Block& block : blocks_) {
    const std::byte* const staged = staging;
    if (block.staged) staging += block.bytes;
    if (block.share != Share::service) continue;
    const DataType& type = *types_[block.type];
    offpath_block_t described{block.peer, block.tag, nullptr, block.bytes, 0};
    if (block.staged) {
      described.address = staged;
    } else if (const auto run = as_run(type, block.address, block.elements)) {
      described.address = reinterpret_cast<const void*>(run->address);
    } else {
      if (layout_of[block.type] == 0) {
        layouts->push_back({static_cast<uint64_t>(type.size_bytes), type.extent_bytes, type.ranges.data(),
                            static_cast<uint32_t>(type.ranges.size())});
        layout_of[block.type] = static_cast<uint32_t>(layouts->size());
      }
      described.address = reinterpret_cast<const void*>(block.address);
      described.layout = layout_of[block.type];
    }
    blocks->push_back(described);
  }
}

}  // namespace offpath::mpi
