// SPDX-License-Identifier: BSD-3-Clause
// The arguments of a large-count collective, for the function of the same meaning that counts in int.
#pragma once

#include "mpi/native/arguments.hpp"
#include "mpi/native/elements.hpp"

#include <mpi.h>

#include <optional>
#include <vector>

namespace offpath::mpi {

// What of the arguments a rank may look at, and how many entries arrays have.
enum class Meaning : uint8_t { all, recv_at_root, send_at_root, reduction, neighbors };
// Whether this rank is the root of a collective.
bool is_root(MPI_Comm comm, int root);
// How long arrays must stay: until the call has returned, or longer than anybody tells us.
enum class Until : uint8_t { returned, for_ever };

class Narrowed {
 public:
  Narrowed(const Arguments& wide, Meaning meaning, Until until, MPI_Comm comm);
  // MPI error code; no handler was called.
  int code() const { return code_; }
  const Arguments& arguments() const { return arguments_; }

 private:
  void narrow(const Arguments& wide, Meaning meaning, MPI_Comm comm);
  int narrow(Stated* side, std::optional<Elements>* elements, int entries);
  int narrow(Numbers* numbers, int entries);

  Arguments arguments_;
  Until until_;
  int code_ = MPI_SUCCESS;
  std::optional<Elements> send_, recv_;
  std::vector<std::vector<int>> arrays_;
};

}  // namespace offpath::mpi
