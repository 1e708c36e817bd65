// SPDX-License-Identifier: BSD-3-Clause
#include "datatype.hpp"

#include "native.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <vector>

namespace offpath::mpi {
namespace {

constexpr int kMaxNesting = 16;
constexpr int64_t kPackPieceBytes = int64_t{1} << 30;  // MPI_Pack counts in int

bool fill_sizes(MPI_Datatype type, Layout* layout) {
  MPI_Count size = 0;  // int has no room for a type of 2 GiB
  MPI_Aint lower = 0, extent = 0, true_lower = 0, true_extent = 0;
  if (native.Type_size_x(type, &size) != MPI_SUCCESS) return false;
  if (native.Type_get_extent(type, &lower, &extent) != MPI_SUCCESS) return false;
  if (native.Type_get_true_extent(type, &true_lower, &true_extent) != MPI_SUCCESS) return false;
  layout->size_bytes = size;
  layout->extent_bytes = extent;
  layout->offset_bytes = true_lower;
  layout->contiguous = size == extent && size == true_extent;
  return true;
}

// Equal size and extent do not yet mean that the bytes come in order; the constructors that keep order are known.
bool keeps_order(MPI_Datatype type, int nesting) {
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  if (native.Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS) return false;
  if (combiner == MPI_COMBINER_NAMED) {
    Layout layout;
    return fill_sizes(type, &layout) && layout.contiguous;
  }
  if (types != 1 || nesting >= kMaxNesting) return false;
  std::vector<int> ints(static_cast<size_t>(integers) + 1);
  std::vector<MPI_Aint> aints(static_cast<size_t>(addresses) + 1);
  MPI_Datatype part = MPI_DATATYPE_NULL;
  if (native.Type_get_contents(type, integers, addresses, types, ints.data(), aints.data(), &part) != MPI_SUCCESS) {
    return false;
  }
  Layout part_layout;
  bool ordered = fill_sizes(part, &part_layout) && part_layout.contiguous && keeps_order(part, nesting + 1);
  switch (combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_CONTIGUOUS:
    case MPI_COMBINER_RESIZED:
      break;
    case MPI_COMBINER_VECTOR:  // count, blocklength, stride
      ordered = ordered && (ints[0] <= 1 || ints[1] == ints[2]);
      break;
    default:
      ordered = false;
  }
  int part_integers = 0, part_addresses = 0, part_types = 0, part_combiner = MPI_COMBINER_NAMED;
  native.Type_get_envelope(part, &part_integers, &part_addresses, &part_types, &part_combiner);
  if (part_combiner != MPI_COMBINER_NAMED) native.Type_free(&part);
  return ordered;
}

struct Builtin {
  MPI_Datatype type;
  int64_t size_bytes;
};

// Sizes of the types that nearly all programs use: no native call on the way of an operation.
const std::vector<Builtin>& builtins() {
  static const std::vector<Builtin> table = [] {
    const MPI_Datatype types[] = {MPI_BYTE,
                                  MPI_DOUBLE,
                                  MPI_FLOAT,
                                  MPI_INT,
                                  MPI_CHAR,
                                  MPI_LONG,
                                  MPI_LONG_LONG_INT,
                                  MPI_SHORT,
                                  MPI_SIGNED_CHAR,
                                  MPI_UNSIGNED_CHAR,
                                  MPI_UNSIGNED,
                                  MPI_UNSIGNED_LONG,
                                  MPI_INT32_T,
                                  MPI_INT64_T,
                                  MPI_UINT32_T,
                                  MPI_UINT64_T,
                                  MPI_UINT8_T,
                                  MPI_INT8_T,
                                  MPI_PACKED,
                                  MPI_C_DOUBLE_COMPLEX,
                                  MPI_INTEGER,
                                  MPI_REAL,
                                  MPI_DOUBLE_PRECISION,
                                  MPI_COMPLEX,
                                  MPI_DOUBLE_COMPLEX,
                                  MPI_C_FLOAT_COMPLEX,
                                  MPI_UNSIGNED_SHORT};
    std::vector<Builtin> filled;
    for (const MPI_Datatype type : types) {
      Layout layout;
      if (type == MPI_DATATYPE_NULL || !fill_sizes(type, &layout) || !layout.contiguous) continue;
      filled.push_back({type, layout.size_bytes});
    }
    return filled;
  }();
  return table;
}

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
int in_pieces(uintptr_t address, int64_t elements, MPI_Datatype type, const Layout& layout, auto* packed, auto&& move) {
  if (elements > 0 && address == 0) {
    const ShiftedType shifted(type);
    const int code = move(ShiftedType::kShift, 1, shifted.get(), packed, static_cast<int>(layout.size_bytes));
    if (code != MPI_SUCCESS) return code;
    packed += layout.size_bytes;
    address += static_cast<uintptr_t>(layout.extent_bytes);
    --elements;
  }
  const int64_t piece = std::clamp<int64_t>(kPackPieceBytes / std::max<int64_t>(layout.size_bytes, 1), 1, INT_MAX);
  for (int64_t done = 0; done < elements; done += piece) {
    const int64_t count = std::min(piece, elements - done);
    const int64_t bytes = count * layout.size_bytes;
    const int code = move(address, static_cast<int>(count), type, packed, static_cast<int>(bytes));
    if (code != MPI_SUCCESS) return code;
    packed += bytes;
    address += static_cast<uintptr_t>(count * layout.extent_bytes);
  }
  return MPI_SUCCESS;
}

}  // namespace

int describe(MPI_Datatype type, MPI_Comm comm, Layout* layout) {
  for (const Builtin& builtin : builtins()) {
    if (builtin.type != type) continue;
    *layout = {builtin.size_bytes, builtin.size_bytes, 0, true, true};
    return MPI_SUCCESS;
  }
  // Checks the handle, and that it was committed, as the native collective would, with the communicator's handler.
  const int code = native.Send(layout, 1, type, MPI_PROC_NULL, 0, comm);
  if (code != MPI_SUCCESS) return code;
  const Inside inside;
  if (!fill_sizes(type, layout)) return MPI_ERR_TYPE;
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  native.Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  layout->builtin = combiner == MPI_COMBINER_NAMED;
  layout->contiguous = layout->contiguous && keeps_order(type, 0);
  return MPI_SUCCESS;
}

int pack(uintptr_t address, int64_t elements, MPI_Datatype type, const Layout& layout, std::byte* packed,
         MPI_Comm comm) {
  if (layout.contiguous) {
    const size_t bytes = static_cast<size_t>(elements * layout.size_bytes);
    if (bytes > 0)
      memcpy(packed, reinterpret_cast<const void*>(address + static_cast<uintptr_t>(layout.offset_bytes)), bytes);
    return MPI_SUCCESS;
  }
  const auto move = [&](uintptr_t from, int count, MPI_Datatype as, std::byte* piece, int bytes) {
    int position = 0;
    return native.Pack(reinterpret_cast<const void*>(from), count, as, piece, bytes, &position, comm);
  };
  return in_pieces(address, elements, type, layout, packed, move);
}

int unpack(const std::byte* packed, uintptr_t address, int64_t elements, MPI_Datatype type, const Layout& layout,
           MPI_Comm comm) {
  if (layout.contiguous) {
    const size_t bytes = static_cast<size_t>(elements * layout.size_bytes);
    if (bytes > 0)
      memcpy(reinterpret_cast<void*>(address + static_cast<uintptr_t>(layout.offset_bytes)), packed, bytes);
    return MPI_SUCCESS;
  }
  const auto move = [&](uintptr_t to, int count, MPI_Datatype as, const std::byte* piece, int bytes) {
    int position = 0;
    return native.Unpack(piece, bytes, &position, reinterpret_cast<void*>(to), count, as, comm);
  };
  return in_pieces(address, elements, type, layout, packed, move);
}

int HeldType::hold(MPI_Datatype type, const Layout& layout) {
  release();
  if (layout.builtin) {
    type_ = type;
    return MPI_SUCCESS;
  }
  // Not MPI_Type_dup: that would run the application's attribute callbacks.
  int code = native.Type_contiguous(1, type, &type_);
  if (code == MPI_SUCCESS) {
    owned_ = true;
    code = native.Type_commit(&type_);
  }
  return code;
}

void HeldType::release() {
  if (owned_) native.Type_free(&type_);
  owned_ = false;
  type_ = MPI_DATATYPE_NULL;
}

}  // namespace offpath::mpi
