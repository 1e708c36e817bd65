// SPDX-License-Identifier: BSD-3-Clause
// Which arguments the collectives take, in MPI's order: from its signature come a collective's handlers and its native
// calls, with int counts and with large ones.
#pragma once

#include "mpi/native/arguments.hpp"

#include <mpi.h>

#include <type_traits>

namespace offpath::mpi {

// The types of counts and displacements in MPI's two forms of a function.
struct SmallCounts {
  using Count = int;
  using Displacement = int;
  static constexpr bool large = false;
};
struct LargeCounts {
  using Count = MPI_Count;
  using Displacement = MPI_Aint;
  static constexpr bool large = true;
};

// One argument, with the type that MPI's prototypes give it.
template <auto side, auto field, typename As>
struct SideField {
  using Value = As;
  static Value get(const Arguments& arguments) {
    const auto& value = arguments.*side.*field;
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, Numbers>)
      return static_cast<Value>(value.data());
    else
      return static_cast<Value>(value);
  }
  static void set(Arguments& arguments, Value value) {
    using Field = std::remove_cvref_t<decltype(arguments.*side.*field)>;
    arguments.*side.*field = Field(value);
  }
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

// What comes before the communicator in a collective's prototypes.
template <typename Width, typename... Fields>
struct Signature {
  // Out of line: many handlers have the same one.
  [[gnu::noinline]] static Arguments collect(typename Fields::Value... values) {
    Arguments arguments;
    arguments.large = Width::large;
    (Fields::set(arguments, values), ...);
    return arguments;
  }
  // `tail`: the communicator and what follows it.
  static int call(auto function, const Arguments& arguments, auto... tail) {
    return function(Fields::get(arguments)..., tail...);
  }
};

// By what they look like. Form: a template of a width and fields.
template <template <typename, typename...> class Form, typename Width>
struct Signatures {
  template <auto side>
  using Buffer = SideField<side, &Stated::buffer, const void*>;
  template <auto side>
  using Count = SideField<side, &Stated::count, typename Width::Count>;
  template <auto side>
  using Counts = SideField<side, &Stated::counts, const typename Width::Count*>;
  template <auto side>
  using Displs = SideField<side, &Stated::displs, const typename Width::Displacement*>;
  template <auto side>
  using DisplsBytes = SideField<side, &Stated::displs_bytes, const MPI_Aint*>;
  template <auto side>
  using Type = SideField<side, &Stated::type, MPI_Datatype>;
  template <auto side>
  using Types = SideField<side, &Stated::types, const MPI_Datatype*>;
  using Operator = OwnField<&Arguments::op>;
  using Root = OwnField<&Arguments::root>;

  static constexpr auto kSend = &Arguments::send;
  static constexpr auto kRecv = &Arguments::recv;
  using From = Buffer<kSend>;

  using Nothing = Form<Width>;
  using Broadcast = Form<Width, RecvBuffer, Count<kRecv>, Type<kRecv>, Root>;
  using Even = Form<Width, From, Count<kSend>, Type<kSend>, RecvBuffer, Count<kRecv>, Type<kRecv>>;
  using EvenRooted = Form<Width, From, Count<kSend>, Type<kSend>, RecvBuffer, Count<kRecv>, Type<kRecv>, Root>;
  using UnevenRecv =
      Form<Width, From, Count<kSend>, Type<kSend>, RecvBuffer, Counts<kRecv>, Displs<kRecv>, Type<kRecv>>;
  using UnevenRecvRooted =
      Form<Width, From, Count<kSend>, Type<kSend>, RecvBuffer, Counts<kRecv>, Displs<kRecv>, Type<kRecv>, Root>;
  using UnevenSendRooted =
      Form<Width, From, Counts<kSend>, Displs<kSend>, Type<kSend>, RecvBuffer, Count<kRecv>, Type<kRecv>, Root>;
  using Uneven = Form<Width, From, Counts<kSend>, Displs<kSend>, Type<kSend>, RecvBuffer, Counts<kRecv>, Displs<kRecv>,
                      Type<kRecv>>;
  using Typed = Form<Width, From, Counts<kSend>, Displs<kSend>, Types<kSend>, RecvBuffer, Counts<kRecv>, Displs<kRecv>,
                     Types<kRecv>>;
  using TypedBytes = Form<Width, From, Counts<kSend>, DisplsBytes<kSend>, Types<kSend>, RecvBuffer, Counts<kRecv>,
                          DisplsBytes<kRecv>, Types<kRecv>>;
  using Reduction = Form<Width, From, RecvBuffer, Count<kRecv>, Type<kRecv>, Operator>;
  using ReductionRooted = Form<Width, From, RecvBuffer, Count<kRecv>, Type<kRecv>, Operator, Root>;
  using ReductionUneven = Form<Width, From, RecvBuffer, Counts<kRecv>, Type<kRecv>, Operator>;
};

}  // namespace offpath::mpi
