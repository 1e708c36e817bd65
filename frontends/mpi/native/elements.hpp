// SPDX-License-Identifier: BSD-3-Clause
// So many elements of a type, for native functions that count in int.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace offpath::mpi {

class Elements {
 public:
  // Makes a derived type where there are more than an int counts. Inside.
  Elements(int64_t count, MPI_Datatype type);
  ~Elements();
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;

  // MPI error code.
  int code() const { return code_; }
  int count() const { return count_; }
  // A native call that was given it may still be under way when this object ends.
  MPI_Datatype type() const { return type_; }

 private:
  int make(int64_t count, MPI_Datatype of);

  int code_ = MPI_SUCCESS;
  int count_;
  MPI_Datatype type_;
  bool made_ = false;
};

}  // namespace offpath::mpi
