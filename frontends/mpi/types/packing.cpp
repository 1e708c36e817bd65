// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/native/native.hpp"
#include "mpi/types/datatype.hpp"

#include <algorithm>
#include <climits>
#include <cstring>

namespace offpath::mpi {
namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 30;  // MPI_Pack counts in int

// The type with its origin moved, for data at MPI_BOTTOM: MPICH's MPI_Pack and MPI_Unpack refuse that address.
class ShiftedType {
 public:
  static constexpr uintptr_t kShift = 4096;
  explicit ShiftedType(MPI_Datatype type) {
    const int one = 1;
    const MPI_Aint back = -static_cast<MPI_Aint>(kShift);
    made_ = native.Type_create_hindexed(1, &one, &back, type, &type_) == MPI_SUCCESS;
    if (made_) native.Type_commit(&type_);
  }
  ~ShiftedType() {
    if (made_) native.Type_free(&type_);
  }
  ShiftedType(const ShiftedType&) = delete;
  ShiftedType& operator=(const ShiftedType&) = delete;
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  bool made_ = false;
};

// Calls move(address, count, type, packed, packed bytes) for pieces that the native functions can count.
int in_pieces(const HeldType& held, uintptr_t address, int64_t elements, auto* packed, auto&& move) {
  const DataType& type = *held;
  if (type.size_bytes > INT_MAX) return MPI_ERR_COUNT;
  if (elements > 0 && address == 0) {
    const ShiftedType shifted(held.handle());
    const int code = move(ShiftedType::kShift, 1, shifted.get(), packed, static_cast<int>(type.size_bytes));
    if (code != MPI_SUCCESS) return code;
    packed += type.size_bytes;
    address += static_cast<uintptr_t>(type.extent_bytes);
    --elements;
  }
  const int64_t piece = std::clamp<int64_t>(kPieceBytes / std::max<int64_t>(type.size_bytes, 1), 1, INT_MAX);
  for (int64_t done = 0; done < elements; done += piece) {
    const int64_t count = std::min(piece, elements - done);
    const int64_t bytes = count * type.size_bytes;
    const int code = move(address, static_cast<int>(count), held.handle(), packed, static_cast<int>(bytes));
    if (code != MPI_SUCCESS) return code;
    packed += bytes;
    address += static_cast<uintptr_t>(count * type.extent_bytes);
  }
  return MPI_SUCCESS;
}

// Calls move(address, packed, bytes) for each range.
void in_ranges(const DataType& type, uintptr_t address, int64_t elements, auto* packed, auto&& move) {
  for (int64_t i = 0; i < elements; ++i, address += static_cast<uintptr_t>(type.extent_bytes)) {
    for (const offpath_range_t& range : type.ranges) {
      move(address + static_cast<uintptr_t>(range.offset_bytes), packed, range.bytes);
      packed += range.bytes;
    }
  }
}

}  // namespace

std::optional<Run> as_run(const DataType& type, uintptr_t address, int64_t elements) {
  if (elements == 0 || type.size_bytes == 0) return Run{};
  if (type.form != Form::contiguous && (elements != 1 || type.ranges.size() != 1)) return std::nullopt;
  return Run{address + static_cast<uintptr_t>(type.ranges[0].offset_bytes),
             static_cast<uint64_t>(elements * type.size_bytes)};
}

namespace {

// Bytes on one side and packed ones on the other, whichever way they go.
template <typename Packed, typename Copy, typename Move>
int transfer(const HeldType& held, uintptr_t address, int64_t elements, Packed* packed, const Copy& copy,
             const Move& move) {
  const DataType& type = *held;
  if (const auto run = as_run(type, address, elements)) {
    copy(run->address, packed, run->bytes);
    return MPI_SUCCESS;
  }
  if (type.form != Form::layout) return in_pieces(held, address, elements, packed, move);
  in_ranges(type, address, elements, packed, copy);
  return MPI_SUCCESS;
}

}  // namespace

int pack(const HeldType& held, uintptr_t address, int64_t elements, std::byte* packed, MPI_Comm comm) {
  const auto copy = [](uintptr_t from, std::byte* to, uint64_t bytes) {
    if (bytes > 0) memcpy(to, reinterpret_cast<const void*>(from), bytes);
  };
  const auto move = [&](uintptr_t from, int count, MPI_Datatype as, std::byte* piece, int bytes) {
    int position = 0;
    return native.Pack(reinterpret_cast<const void*>(from), count, as, piece, bytes, &position, comm);
  };
  return transfer(held, address, elements, packed, copy, move);
}

int unpack(const HeldType& held, const std::byte* packed, uintptr_t address, int64_t elements, MPI_Comm comm) {
  const auto copy = [](uintptr_t to, const std::byte* from, uint64_t bytes) {
    if (bytes > 0) memcpy(reinterpret_cast<void*>(to), from, bytes);
  };
  const auto move = [&](uintptr_t to, int count, MPI_Datatype as, const std::byte* piece, int bytes) {
    int position = 0;
    return native.Unpack(piece, bytes, &position, reinterpret_cast<void*>(to), count, as, comm);
  };
  return transfer(held, address, elements, packed, copy, move);
}

}  // namespace offpath::mpi
