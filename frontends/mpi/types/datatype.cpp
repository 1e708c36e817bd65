// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/types/datatype.hpp"

#include "mpi/native/native.hpp"
#include "mpi/types/flatten.hpp"
#include "mpi/types/predefined.hpp"

namespace offpath::mpi {
namespace {

// Below that a copy through staging memory costs less than the service's work per range.
constexpr uint64_t kMinRangeBytes = 512;
constexpr size_t kMaxKeptRanges = 4096;
constexpr int64_t kMaxPackBytes = int64_t{1} << 30;  // MPI_Pack counts in int

int keyval = MPI_KEYVAL_INVALID;

int copy_attribute(MPI_Datatype, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

int delete_attribute(MPI_Datatype, int, void* value, void*) {
  delete static_cast<TypeRef*>(value);
  return MPI_SUCCESS;
}

Form form_of(const DataType& type, const Ranges& ranges) {
  if (ranges.empty()) return Form::contiguous;
  if (ranges.size() == 1 && static_cast<int64_t>(ranges[0].bytes) == type.extent_bytes) return Form::contiguous;
  const bool long_ranges = static_cast<uint64_t>(type.size_bytes) >= kMinRangeBytes * ranges.size();
  const bool few = ranges.size() <= kMaxKeptRanges;
  return few && (long_ranges || type.size_bytes > kMaxPackBytes) ? Form::layout : Form::packed;
}

Nature nature_of_f90(int combiner) {
  if (combiner == MPI_COMBINER_F90_INTEGER) return Nature::fortran_integer;
  return combiner == MPI_COMBINER_F90_REAL ? Nature::real : Nature::complex;
}

TypeRef examine(MPI_Datatype given) {
  auto type = std::make_shared<DataType>();
  MPI_Count size = 0;  // int has no room for a type of 2 GiB
  MPI_Aint lower = 0, extent = 0;
  if (native.Type_size_x(given, &size) != MPI_SUCCESS) return nullptr;
  if (native.Type_get_extent(given, &lower, &extent) != MPI_SUCCESS) return nullptr;
  type->size_bytes = size;
  type->extent_bytes = extent;
  const int combiner = combiner_of(given);
  type->predefined = combiner == MPI_COMBINER_NAMED || is_f90(combiner);
  if (is_f90(combiner)) set_reduction(type.get(), nature_of_f90(combiner));
  if (!type->predefined) type->basic = basic_type(given);
  std::optional<Ranges> ranges = flatten(given);
  if (!ranges) return type;
  type->form = form_of(*type, *ranges);
  if (ranges->size() <= kMaxKeptRanges) type->ranges = std::move(*ranges);
  return type;
}

}  // namespace

int HeldType::hold() {
  if (type_->predefined) return MPI_SUCCESS;
  // Not MPI_Type_dup: that would run the application's attribute callbacks.
  MPI_Datatype copy = MPI_DATATYPE_NULL;
  const int code = native.Type_contiguous(1, handle_, &copy);
  if (code != MPI_SUCCESS) return code;
  handle_ = copy;
  owned_ = true;
  return native.Type_commit(&handle_);
}

HeldType::~HeldType() {
  if (owned_) native.Type_free(&handle_);
}

TypeRef find_type(MPI_Datatype type, MPI_Comm comm) {
  if (TypeRef known = find_predefined(type)) return known;
  if (type == MPI_DATATYPE_NULL) return nullptr;
  // A message to nobody: is it a datatype, and committed?
  const int nothing = 0;
  if (native.Send(&nothing, 1, type, MPI_PROC_NULL, 0, comm) != MPI_SUCCESS) return nullptr;
  TypeRef* remembered = nullptr;
  int found = 0;
  if (native.Type_get_attr(type, keyval, &remembered, &found) == MPI_SUCCESS && found != 0) return *remembered;
  TypeRef made = examine(type);
  if (made == nullptr) return nullptr;
  auto reference = std::make_unique<TypeRef>(made);
  if (native.Type_set_attr(type, keyval, reference.get()) == MPI_SUCCESS) static_cast<void>(reference.release());
  return made;
}

int open_types() { return native.Type_create_keyval(&copy_attribute, &delete_attribute, &keyval, nullptr); }

void close_types() {
  if (keyval != MPI_KEYVAL_INVALID) native.Type_free_keyval(&keyval);
}

}  // namespace offpath::mpi
