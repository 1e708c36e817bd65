// SPDX-License-Identifier: BSD-3-Clause
// What an offloaded operation must know of an MPI datatype: which bytes of memory an element stands for, and, where it
// can be reduced, as what.
//
// A derived datatype is flattened once and remembered until the application frees its handle. Who needs it for longer
// than a call holds it: the application may do so at once.
//
// Threads: any.
#pragma once

#include <mpi.h>
#include <offpath/offpath.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace offpath::mpi {

// How the data bytes of elements lie in memory, and so how the service gets at them.
enum class Form : uint8_t {
  contiguous,  // any number of elements is one run of bytes, in type map order
  layout,      // the service works on the ranges
  packed       // short or unknown ranges: through staging memory, by MPI_Pack
};

struct DataType {
  bool predefined = false;
  Form form = Form::packed;
  int64_t size_bytes = 0;               // data bytes of one element
  int64_t extent_bytes = 0;             // from one element to the next
  std::vector<offpath_range_t> ranges;  // of one element; empty where they are too many or cannot be told
  offpath_element_t element = OFFPATH_ELEMENT_NONE;
  // Those that this library does on it, in collectives and in one-sided accumulates: bit 1 << offpath_operator_t.
  uint32_t operators = 0, accumulated = 0;
  std::shared_ptr<const DataType> basic;  // derived types: the predefined one of which all of it consists, or nullptr

  // What all of it is made of, if that is one thing.
  offpath_element_t made_of() const {
    return predefined ? element : basic == nullptr ? OFFPATH_ELEMENT_NONE : basic->element;
  }
  bool reduces(offpath_operator_t op) const { return (operators >> op & 1) != 0; }
  bool accumulates(offpath_operator_t op) const { return (accumulated >> op & 1) != 0; }
  // As what a compare and swap takes it: an element of as many bytes. NONE: the library does not swap it.
  offpath_element_t swapped() const;
  // One number in either: integers of a size are, with a sign or without.
  bool is_alike(const DataType& other) const;
};
using TypeRef = std::shared_ptr<const DataType>;

// The type behind a handle, or nullptr: the native library would refuse it (not a handle, not committed). `comm`: any
// communicator that returns errors. Precondition: Inside, types are open.
TypeRef find_type(MPI_Datatype type, MPI_Comm comm);

// The operator, or OFFPATH_OP_NONE: user-defined, or none that the service knows.
offpath_operator_t find_operator(MPI_Op op);

// Before MPI_Finalize: forgets all.
void close_types();

// Elements at `address` as one piece of memory; nothing where they are not.
struct Run {
  uintptr_t address = 0;
  uint64_t bytes = 0;
};
std::optional<Run> as_run(const DataType& type, uintptr_t address, int64_t elements);

// A datatype of the application, usable as long as the application's handle is, or, once held, until this goes. Move
// only.
class HeldType {
 public:
  HeldType(MPI_Datatype handle, TypeRef type) : type_(std::move(type)), handle_(handle) {}
  HeldType(HeldType&& other) noexcept
      : type_(std::move(other.type_)), handle_(other.handle_), owned_(std::exchange(other.owned_, false)) {}
  HeldType& operator=(HeldType&&) = delete;
  ~HeldType();
  // Once. MPI error code.
  int hold();

  const DataType& operator*() const { return *type_; }
  const DataType* operator->() const { return type_.get(); }
  MPI_Datatype handle() const { return handle_; }

 private:
  TypeRef type_;
  MPI_Datatype handle_;
  bool owned_ = false;
};

// Copies elements between user memory and packed bytes. MPI error code; `comm` returns errors.
int pack(const HeldType& type, uintptr_t address, int64_t elements, std::byte* packed, MPI_Comm comm);
int unpack(const HeldType& type, const std::byte* packed, uintptr_t address, int64_t elements, MPI_Comm comm);

}  // namespace offpath::mpi
