// SPDX-License-Identifier: BSD-3-Clause
// The arguments of all collectives in one form, and signatures: which of them a collective takes, in MPI's order. From
// its signature come a collective's handlers and its native calls.
#pragma once

#include <mpi.h>

#include <type_traits>

namespace offpath::mpi {

// One side as the caller states it: blocks in one buffer. What a collective does not take stays as it is here.
struct Stated {
  const void* buffer = nullptr;
  int count = 0;                           // of every block, or
  const int* counts = nullptr;             // of each; then the blocks are not one behind the other but at
  const int* displs = nullptr;             // so many extents, or bytes where each has a type of its own, or
  const MPI_Aint* displs_bytes = nullptr;  // so many bytes
  MPI_Datatype type = MPI_DATATYPE_NULL;   // of every block, or
  const MPI_Datatype* types = nullptr;     // of each
};

struct Arguments {
  Stated send;
  Stated recv;  // also the buffer of a broadcast, and count and type of reductions
  MPI_Op op = MPI_OP_NULL;
  int root = 0;
};

// One argument, with the type that MPI's prototypes give it.
template <auto side, auto field>
struct SideField {
  using Value = std::remove_cvref_t<decltype(Stated{}.*field)>;
  static Value get(const Arguments& arguments) { return arguments.*side.*field; }
  static void set(Arguments& arguments, Value value) { arguments.*side.*field = value; }
};
template <auto member>
struct OwnField {
  using Value = std::remove_cvref_t<decltype(Arguments{}.*member)>;
  static Value get(const Arguments& arguments) { return arguments.*member; }
  static void set(Arguments& arguments, Value value) { arguments.*member = value; }
};
struct RecvBuffer {
  using Value = void*;
  static Value get(const Arguments& arguments) { return const_cast<void*>(arguments.recv.buffer); }
  static void set(Arguments& arguments, Value value) { arguments.recv.buffer = value; }
};
using SendBuffer = SideField<&Arguments::send, &Stated::buffer>;
using SendCount = SideField<&Arguments::send, &Stated::count>;
using SendCounts = SideField<&Arguments::send, &Stated::counts>;
using SendDispls = SideField<&Arguments::send, &Stated::displs>;
using SendDisplsBytes = SideField<&Arguments::send, &Stated::displs_bytes>;
using SendType = SideField<&Arguments::send, &Stated::type>;
using SendTypes = SideField<&Arguments::send, &Stated::types>;
using RecvCount = SideField<&Arguments::recv, &Stated::count>;
using RecvCounts = SideField<&Arguments::recv, &Stated::counts>;
using RecvDispls = SideField<&Arguments::recv, &Stated::displs>;
using RecvDisplsBytes = SideField<&Arguments::recv, &Stated::displs_bytes>;
using RecvType = SideField<&Arguments::recv, &Stated::type>;
using RecvTypes = SideField<&Arguments::recv, &Stated::types>;
using Operator = OwnField<&Arguments::op>;
using Root = OwnField<&Arguments::root>;

// What comes before the communicator in a collective's prototypes.
template <typename... Fields>
struct Signature {
  static Arguments collect(typename Fields::Value... values) {
    Arguments arguments;
    (Fields::set(arguments, values), ...);
    return arguments;
  }
  // `tail`: the communicator and what follows it.
  static int call(auto function, const Arguments& arguments, auto... tail) {
    return function(Fields::get(arguments)..., tail...);
  }
};

}  // namespace offpath::mpi
