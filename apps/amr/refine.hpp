// SPDX-License-Identifier: BSD-3-Clause
// A patch with finer or coarser cells: as much water as before. Pure.
#pragma once

#include "shape.hpp"

namespace amr {

// Whether depths differ by more than that, in the patch and next to it.
bool is_busy(Shape shape, const double* state, double tolerance);
// From cells and ghosts of one to the cells of the other, whose cells are half as wide, or twice.
void change_cells(Shape from, const double* state, Shape to, double* out);

}  // namespace amr
