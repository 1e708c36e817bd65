// SPDX-License-Identifier: BSD-3-Clause
// How a datatype was made: its constructor and the arguments of that, as MPI's inquiry functions tell them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace offpath::mpi {

// Of the arguments a type was made with: how many there are of each kind.
struct Envelope {
  int integers = 0;
  int addresses = 0;
  int large_counts = 0;
  int types = 0;
  int combiner = MPI_UNDEFINED;
};

// The arguments, in the order in which the constructor without large counts has them, whichever it was. Inside. May throw bad_alloc.
class Contents {
 public:
  explicit Contents(MPI_Datatype type);
  ~Contents();
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  // MPI_UNDEFINED: nothing can be told.
  int combiner() const { return envelope_.combiner; }
  int64_t types() const { return envelope_.types; }
  int64_t integer(int64_t i) const { return integers_[static_cast<size_t>(i)]; }
  int64_t address(int64_t i) const { return addresses_[static_cast<size_t>(i)]; }
  MPI_Datatype type(int64_t i) const { return types_[static_cast<size_t>(i)]; }

 private:
  bool read(MPI_Datatype type);
  bool arrange(const std::vector<int>& integers, const std::vector<MPI_Count>& counts);

  Envelope envelope_;
  std::vector<int64_t> integers_, addresses_;
  std::vector<MPI_Datatype> types_;
};

// How the type was made; MPI_COMBINER_NAMED for predefined ones, MPI_UNDEFINED if it cannot be told.
int combiner_of(MPI_Datatype type);
// Predefined, yet without a name: from MPI_Type_create_f90_real and its like. Must not be freed.
bool is_f90(int combiner);

}  // namespace offpath::mpi
