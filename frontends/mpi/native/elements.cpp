// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/native/elements.hpp"

#include "mpi/native/native.hpp"

#include <climits>

namespace offpath::mpi {

Elements::Elements(int64_t count, MPI_Datatype type) : count_(static_cast<int>(count)), type_(type) {
  if (count < INT_MIN || count > INT_MAX) code_ = make(count, type);
}

Elements::~Elements() {
  if (made_) native.Type_free(&type_);
}

// Stretches of INT_MAX elements, and the rest.
int Elements::make(int64_t count, MPI_Datatype of) {
  if (count < 0 || count / INT_MAX > INT_MAX) return MPI_ERR_COUNT;
  MPI_Aint lower = 0, extent = 0;
  int code = native.Type_get_extent(of, &lower, &extent);
  if (code != MPI_SUCCESS) return code;
  const auto stretches = static_cast<int>(count / INT_MAX);
  MPI_Datatype stretch = MPI_DATATYPE_NULL, both = MPI_DATATYPE_NULL;
  code = native.Type_contiguous(INT_MAX, of, &stretch);
  if (code != MPI_SUCCESS) return code;
  const int lengths[2] = {stretches, static_cast<int>(count % INT_MAX)};
  const MPI_Aint places[2] = {0, static_cast<MPI_Aint>(stretches) * INT_MAX * extent};
  const MPI_Datatype types[2] = {stretch, of};
  code = native.Type_create_struct(2, lengths, places, types, &both);
  native.Type_free(&stretch);
  if (code != MPI_SUCCESS) return code;
  // A struct may be padded.
  code = native.Type_create_resized(both, lower, static_cast<MPI_Aint>(count) * extent, &type_);
  native.Type_free(&both);
  if (code != MPI_SUCCESS) return code;
  made_ = true;
  count_ = 1;
  return native.Type_commit(&type_);
}

}  // namespace offpath::mpi
