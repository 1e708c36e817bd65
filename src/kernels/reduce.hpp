// SPDX-License-Identifier: BSD-3-Clause
// Reductions: the predefined operators of MPI on the element types MPI allows them for. Pure functions, plain loops
// that the compiler vectorises; results depend on the operands and their order only, never on alignment or length.
//
// Threads: any. Adding an element type: a row of words/elements.def; an operator: one of operators.def, and what it does in reduce.cpp.
#pragma once

#include <offpath/offpath.h>

#include <cstddef>
#include <cstdint>

namespace offpath::kernels {

struct Reduction {
  offpath_operator_t op = OFFPATH_OP_NONE;
  offpath_element_t element = OFFPATH_ELEMENT_NONE;
  bool operator==(const Reduction&) const = default;
};

// Distance in memory between two elements (padding of pairs included), a power of two; 0 for none and unknown values.
size_t element_bytes(offpath_element_t element);

// Is the operator defined on that element type? False for values that are no enumerators.
bool supported(const Reduction& reduction);

// REPLACE and NO_OP are not commutative: they mean something between an origin and a target only.
inline bool one_sided_only(offpath_operator_t op) { return op == OFFPATH_OP_REPLACE || op == OFFPATH_OP_NO_OP; }

// result[i] = left[i] ∘ right[i]. `bytes` is a multiple of element_bytes; result may be left or right; no alignment is
// needed. The reduction is supported. Ties of minloc and maxloc take the smaller index, as MPI says.
void combine(const Reduction& reduction, const void* left, const void* right, void* result, size_t bytes);

}  // namespace offpath::kernels
