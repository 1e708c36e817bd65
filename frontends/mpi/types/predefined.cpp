// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/types/predefined.hpp"

#include "mpi/native/handle_table.hpp"
#include "mpi/native/native.hpp"

#include <algorithm>
#include <unordered_map>

namespace offpath::mpi {
namespace {

struct Row {
  MPI_Datatype type;
  Nature nature;
  offpath_element_t element = OFFPATH_ELEMENT_NONE;
};

#ifdef OPEN_MPI
constexpr bool kOpenMpi = true;
#else
constexpr bool kOpenMpi = false;
#endif
constexpr offpath_element_t kByte = kOpenMpi ? OFFPATH_ELEMENT_U8 : OFFPATH_ELEMENT_I8;

// What is not here (a Fortran type of another size, MPI_LB) is a datatype like any other.
const Row kRows[] = {
    {MPI_BYTE, Nature::bytes, kByte},
    {MPI_PACKED, Nature::packed, kByte},
    {MPI_CHAR, Nature::integer},  // a character, says MPI; a number, say the libraries
    {MPI_WCHAR, Nature::opaque},
    {MPI_CHARACTER, Nature::integer, kByte},
    {MPI_SIGNED_CHAR, Nature::integer},
    {MPI_SHORT, Nature::integer},
    {MPI_INT, Nature::integer},
    {MPI_LONG, Nature::integer},
    {MPI_LONG_LONG, Nature::integer},
    {MPI_INT8_T, Nature::integer},
    {MPI_INT16_T, Nature::integer},
    {MPI_INT32_T, Nature::integer},
    {MPI_INT64_T, Nature::integer},
    {MPI_UNSIGNED_CHAR, Nature::natural},
    {MPI_UNSIGNED_SHORT, Nature::natural},
    {MPI_UNSIGNED, Nature::natural},
    {MPI_UNSIGNED_LONG, Nature::natural},
    {MPI_UNSIGNED_LONG_LONG, Nature::natural},
    {MPI_UINT8_T, Nature::natural},
    {MPI_UINT16_T, Nature::natural},
    {MPI_UINT32_T, Nature::natural},
    {MPI_UINT64_T, Nature::natural},
    {MPI_INTEGER, Nature::fortran_integer},
    {MPI_INTEGER1, Nature::integer},
    {MPI_INTEGER2, Nature::integer},
    {MPI_INTEGER4, Nature::fortran_integer},
    {MPI_INTEGER8, Nature::integer},
    {MPI_AINT, Nature::integer},
    {MPI_OFFSET, Nature::integer},
    {MPI_COUNT, Nature::integer},
    {MPI_FLOAT, Nature::real},
    {MPI_DOUBLE, Nature::real},
    {MPI_LONG_DOUBLE, Nature::real, OFFPATH_ELEMENT_FLONG},
    {MPI_REAL, Nature::fortran_real},
    {MPI_DOUBLE_PRECISION, Nature::fortran_real},
    {MPI_REAL4, Nature::fortran_real},
    {MPI_REAL8, Nature::fortran_real},
    {MPI_REAL16, Nature::opaque},
    {MPI_C_FLOAT_COMPLEX, Nature::complex},
    {MPI_C_DOUBLE_COMPLEX, Nature::complex},
    {MPI_C_LONG_DOUBLE_COMPLEX, Nature::complex, OFFPATH_ELEMENT_CLONG},
    {MPI_CXX_FLOAT_COMPLEX, Nature::complex},
    {MPI_CXX_DOUBLE_COMPLEX, Nature::complex},
    {MPI_CXX_LONG_DOUBLE_COMPLEX, Nature::complex, OFFPATH_ELEMENT_CLONG},
    {MPI_COMPLEX, Nature::complex},
    {MPI_DOUBLE_COMPLEX, Nature::complex},
    {MPI_COMPLEX8, Nature::complex},
    {MPI_COMPLEX16, Nature::complex},
    {MPI_COMPLEX32, Nature::opaque},
    {MPI_C_BOOL, Nature::logical},
    {MPI_CXX_BOOL, Nature::logical},
    {MPI_LOGICAL, Nature::logical},
#ifdef MPI_LOGICAL1
    {MPI_LOGICAL1, Nature::integer},
#endif
#ifdef MPI_LOGICAL2
    {MPI_LOGICAL2, Nature::integer},
#endif
#ifdef MPI_LOGICAL4
    {MPI_LOGICAL4, Nature::logical},
#endif
#ifdef MPI_LOGICAL8
    {MPI_LOGICAL8, Nature::integer},
#endif
    {MPI_FLOAT_INT, Nature::pair, OFFPATH_ELEMENT_F32_I32},
    {MPI_DOUBLE_INT, Nature::pair, OFFPATH_ELEMENT_F64_I32},
    {MPI_LONG_INT, Nature::pair, OFFPATH_ELEMENT_I64_I32},
    {MPI_2INT, Nature::pair, OFFPATH_ELEMENT_I32_I32},
    {MPI_SHORT_INT, Nature::pair, OFFPATH_ELEMENT_I16_I32},
    {MPI_LONG_DOUBLE_INT, Nature::pair, OFFPATH_ELEMENT_FLONG_I32},
    {MPI_2REAL, Nature::pair, OFFPATH_ELEMENT_F32_F32},
    {MPI_2DOUBLE_PRECISION, Nature::pair, OFFPATH_ELEMENT_F64_F64},
    {MPI_2INTEGER, Nature::pair, OFFPATH_ELEMENT_I32_I32},
};

constexpr uint32_t bits(auto... operators) { return (0u | ... | (1u << operators)); }
constexpr uint32_t kSumProduct = bits(OFFPATH_OP_SUM, OFFPATH_OP_PROD);
constexpr uint32_t kArithmetic = kSumProduct | bits(OFFPATH_OP_MIN, OFFPATH_OP_MAX);
constexpr uint32_t kBitwise = bits(OFFPATH_OP_BAND, OFFPATH_OP_BOR, OFFPATH_OP_BXOR);
constexpr uint32_t kLogical = bits(OFFPATH_OP_LAND, OFFPATH_OP_LOR, OFFPATH_OP_LXOR);
constexpr uint32_t kIntegers = kArithmetic | kBitwise | kLogical;

uint32_t operators_of(Nature nature) {
  switch (nature) {
    case Nature::opaque:
    case Nature::packed:
      return 0;
    case Nature::bytes:
      return kOpenMpi ? kIntegers : kBitwise;
    case Nature::integer:
    case Nature::natural:
      return kIntegers;
    case Nature::fortran_integer:
      return kOpenMpi ? kArithmetic | kBitwise : kIntegers;
    case Nature::logical:
      return kLogical;
    case Nature::real:
      return kOpenMpi ? kArithmetic : kArithmetic | bits(OFFPATH_OP_LXOR);
    case Nature::fortran_real:
      return kArithmetic;
    case Nature::complex:
      return kSumProduct;
    case Nature::pair:
      return bits(OFFPATH_OP_MINLOC, OFFPATH_OP_MAXLOC);
  }
  return 0;
}

// MPICH accumulates whatever its processor has an integer for.
uint32_t accumulated_of(Nature nature) {
  if (kOpenMpi) return operators_of(nature);
  const bool integers = nature == Nature::bytes || nature == Nature::packed || nature == Nature::logical;
  return integers ? kIntegers : operators_of(nature);
}

offpath_element_t element_of(Nature nature, int64_t size_bytes) {
  switch (nature) {
    case Nature::integer:
    case Nature::fortran_integer:
    case Nature::logical:
      return size_bytes == 1   ? OFFPATH_ELEMENT_I8
             : size_bytes == 2 ? OFFPATH_ELEMENT_I16
             : size_bytes == 4 ? OFFPATH_ELEMENT_I32
             : size_bytes == 8 ? OFFPATH_ELEMENT_I64
                               : OFFPATH_ELEMENT_NONE;
    case Nature::natural:
      return size_bytes == 1   ? OFFPATH_ELEMENT_U8
             : size_bytes == 2 ? OFFPATH_ELEMENT_U16
             : size_bytes == 4 ? OFFPATH_ELEMENT_U32
             : size_bytes == 8 ? OFFPATH_ELEMENT_U64
                               : OFFPATH_ELEMENT_NONE;
    case Nature::real:
    case Nature::fortran_real:
      return size_bytes == 4 ? OFFPATH_ELEMENT_F32 : size_bytes == 8 ? OFFPATH_ELEMENT_F64 : OFFPATH_ELEMENT_NONE;
    case Nature::complex:
      return size_bytes == 8 ? OFFPATH_ELEMENT_C32 : size_bytes == 16 ? OFFPATH_ELEMENT_C64 : OFFPATH_ELEMENT_NONE;
    case Nature::opaque:
    case Nature::packed:
    case Nature::bytes:
    case Nature::pair:
      break;
  }
  return OFFPATH_ELEMENT_NONE;
}

// A pair is a C struct {value, int}, or two of one Fortran type: the second member follows where its alignment allows.
std::vector<offpath_range_t> pair_ranges(int64_t size_bytes, int64_t extent_bytes) {
  constexpr int64_t kIndexBytes = sizeof(int);
  const int64_t value_bytes = size_bytes - kIndexBytes;
  if (size_bytes == extent_bytes || value_bytes >= kIndexBytes) return {{0, static_cast<uint64_t>(size_bytes)}};
  return {{0, static_cast<uint64_t>(value_bytes)}, {kIndexBytes, kIndexBytes}};
}

TypeRef make(const Row& row) {
  MPI_Count size = 0;
  MPI_Aint lower = 0, extent = 0;
  if (row.type == MPI_DATATYPE_NULL || native.Type_size_x(row.type, &size) != MPI_SUCCESS || size <= 0) return nullptr;
  if (native.Type_get_extent(row.type, &lower, &extent) != MPI_SUCCESS) return nullptr;
  auto type = std::make_shared<DataType>();
  type->predefined = true;
  type->size_bytes = size;
  type->extent_bytes = extent;
  type->form = size == extent ? Form::contiguous : Form::packed;
  type->ranges = pair_ranges(size, extent);
  set_reduction(type.get(), row.nature, row.element);
  return type;
}

}  // namespace

void set_reduction(DataType* type, Nature nature, offpath_element_t explicit_element) {
  const bool by_size = explicit_element == OFFPATH_ELEMENT_NONE;
  type->element = by_size ? element_of(nature, type->size_bytes) : explicit_element;
  const bool numbers = type->element != OFFPATH_ELEMENT_NONE;
  type->operators = numbers ? operators_of(nature) : 0;
  type->accumulated = numbers ? accumulated_of(nature) : 0;
}

TypeRef find_predefined(MPI_Datatype type) {
  static const std::unordered_map<uintptr_t, TypeRef> table = [] {
    std::unordered_map<uintptr_t, TypeRef> filled;
    for (const Row& row : kRows) {
      if (TypeRef made = make(row)) filled.emplace(handle_key(row.type), std::move(made));
    }
    return filled;
  }();
  const auto found = table.find(handle_key(type));
  return found == table.end() ? nullptr : found->second;
}

offpath_operator_t find_operator(MPI_Op op) {
#define MPI_NONE MPI_OP_NULL
  const std::pair<MPI_Op, offpath_operator_t> table[] = {
#define OFFPATH_OPERATOR(NAME, number, text, about) {MPI_##NAME, OFFPATH_OP_##NAME},
#include <offpath/words/operators.def>
  };
#undef MPI_NONE
  const auto* found =
      std::find_if(std::begin(table), std::end(table), [op](const auto& row) { return row.first == op; });
  return found == std::end(table) ? OFFPATH_OP_NONE : found->second;
}

offpath_element_t DataType::swapped() const {
#ifdef OPEN_MPI
  const bool swaps = size_bytes == extent_bytes;  // whatever it is, but for padding
#else
  const bool swaps = reduces(OFFPATH_OP_BAND) || reduces(OFFPATH_OP_LAND);
#endif
  if (!swaps) return OFFPATH_ELEMENT_NONE;
  switch (size_bytes) {
    case 1:
      return OFFPATH_ELEMENT_U8;
    case 2:
      return OFFPATH_ELEMENT_U16;
    case 4:
      return OFFPATH_ELEMENT_U32;
    case 8:
      return OFFPATH_ELEMENT_U64;
    case 16:
      return OFFPATH_ELEMENT_C64;
    case 32:
      return OFFPATH_ELEMENT_CLONG;
    default:
      return OFFPATH_ELEMENT_NONE;
  }
}

bool DataType::is_alike(const DataType& other) const {
  const bool integers = reduces(OFFPATH_OP_BAND) && other.reduces(OFFPATH_OP_BAND);
  return size_bytes == other.size_bytes && (element == other.element || integers);
}

}  // namespace offpath::mpi
