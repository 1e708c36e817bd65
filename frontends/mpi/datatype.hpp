// SPDX-License-Identifier: BSD-3-Clause
// What an offloaded operation must know of an MPI datatype: how many bytes it carries and whether they lie in memory as
// the service sends them. Types that do not are packed into staging memory; a rank must never refuse an operation
// because of its own datatype, as the other ranks cannot know it.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace offpath::mpi {

struct Layout {
  int64_t size_bytes = 0;    // data bytes of one element
  int64_t extent_bytes = 0;  // from one element to the next
  int64_t offset_bytes = 0;  // from the element's address to its first byte (true lower bound)
  bool contiguous = false;   // any number of elements is one run of bytes, in type map order
  bool builtin = false;      // predefined: valid without being held
};

// Fills *layout. Returns MPI_SUCCESS, or the native library's error for a type it does not accept, after the error
// handler of `comm` was called. Must not be called Inside.
int describe(MPI_Datatype type, MPI_Comm comm, Layout* layout);

// Copies `elements` elements between user memory at `address` and packed bytes. Returns an MPI error code; errors go to
// the handler of `comm` only as that communicator is set (pass one with MPI_ERRORS_RETURN).
int pack(uintptr_t address, int64_t elements, MPI_Datatype type, const Layout& layout, std::byte* packed,
         MPI_Comm comm);
int unpack(const std::byte* packed, uintptr_t address, int64_t elements, MPI_Datatype type, const Layout& layout,
           MPI_Comm comm);

// A datatype that stays usable after the application has freed its own handle. Move only.
class HeldType {
 public:
  HeldType() = default;
  HeldType(HeldType&& other) noexcept : type_(other.type_), owned_(std::exchange(other.owned_, false)) {}
  HeldType& operator=(HeldType&& other) noexcept {
    std::swap(type_, other.type_);
    std::swap(owned_, other.owned_);
    return *this;
  }
  ~HeldType() { release(); }
  // Returns an MPI error code.
  int hold(MPI_Datatype type, const Layout& layout);
  void release();
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  bool owned_ = false;
};

}  // namespace offpath::mpi
