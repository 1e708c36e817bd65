// SPDX-License-Identifier: BSD-3-Clause
// What a patch gets from a neighbour, in the cells of who gets it: ghosts, and the fluxes of a finer one. Pure.
#pragma once

#include "shape.hpp"

namespace amr {

// From a patch to the one that sees it at (dx, dy), each -1, 0 or 1. Their shapes differ by a factor of two at most.
std::size_t ghosts_count(Shape to, int dx, int dy);
void take_ghosts(Shape from, const double* state, Shape to, int dx, int dy, double* values);
void put_ghosts(Shape to, double* state, int dx, int dy, const double* values);
// Water is thrown back by walls: mirrored cells.
void mirror(Shape shape, double* state, Side side);

// Through that edge of the coarser one, as the finer one beside it has it.
std::size_t fluxes_count(Shape to);
void take_fluxes(Shape from, const double* result, Shape to, Side side, double* values);
// Water that the coarser patch has lost or got too much of. After advance().
void correct(Shape to, double* next, const double* result, Side side, double ratio, const double* values);

}  // namespace amr
