// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/types/datatype.hpp"

#include "mpi/native/handle_table.hpp"
#include "mpi/native/handlers.hpp"
#include "mpi/native/native.hpp"
#include "mpi/types/contents.hpp"
#include "mpi/types/flatten.hpp"
#include "mpi/types/predefined.hpp"

#include <unordered_map>

namespace offpath::mpi {
namespace {

// Below that a copy through staging memory costs less than the service's work per range.
constexpr uint64_t kMinRangeBytes = 512;
constexpr size_t kMaxKeptRanges = 4096;
constexpr int64_t kMaxPackBytes = int64_t{1} << 30;  // MPI_Pack counts in int

// By the handles of the application, until it frees them. Not attributes of the datatypes: MPICH deletes those when the
// last message with the datatype ends, amid its progress, and lets other threads in while it calls us.
class KnownTypes {
 public:
  TypeRef find(MPI_Datatype type) const {
    std::lock_guard lock(mutex_);
    const auto known = types_.find(handle_key(type));
    return known == types_.end() ? nullptr : known->second;
  }
  // May throw bad_alloc.
  void add(MPI_Datatype type, const TypeRef& known) {
    std::lock_guard lock(mutex_);
    types_.insert_or_assign(handle_key(type), known);
  }
  void forget(MPI_Datatype type) {
    std::lock_guard lock(mutex_);
    types_.erase(handle_key(type));
  }
  void clear() {
    std::lock_guard lock(mutex_);
    types_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<uintptr_t, TypeRef> types_;
};

KnownTypes& known_types = *new KnownTypes;  // also for destructors of the program's that free datatypes

int free_type(MPI_Datatype* type) {
  if (type != nullptr) known_types.forget(*type);
  return native.Type_free(type);
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
  if (owned_) free_type(&handle_);
}

TypeRef find_type(MPI_Datatype type, MPI_Comm comm) {
  if (TypeRef known = find_predefined(type)) return known;
  if (type == MPI_DATATYPE_NULL) return nullptr;
  // A message to nobody: is it a datatype, and committed?
  const int nothing = 0;
  if (native.Send(&nothing, 1, type, MPI_PROC_NULL, 0, comm) != MPI_SUCCESS) return nullptr;
  if (TypeRef known = known_types.find(type)) return known;
  TypeRef made = examine(type);
  if (made != nullptr) known_types.add(type, made);
  return made;
}

void close_types() { known_types.clear(); }

namespace handlers {

int Type_free(MPI_Datatype* type) { return free_type(type); }

}  // namespace handlers
}  // namespace offpath::mpi
