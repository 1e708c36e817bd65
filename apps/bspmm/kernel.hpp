// SPDX-License-Identifier: BSD-3-Clause
// Get, compute, update, as in NWChem's tensor contractions; both variants after the pseudo code of Michalowicz et al.
// (HiPC 2024, pp. 23-33).
//
// A rank takes a unit of work, a run of products of one tile of C, from the shared counter. Blocking: gets A and B,
// waits, multiplies. Nonblocking: gets those of the next product, multiplies the current one, then waits. What it made
// of a tile of C is added to it when the next product is of another. No MPI is called in the middle of a
// multiplication.
#pragma once

#include <vector>

#include "../kit/clocks.hpp"
#include "pattern.hpp"
#include "store.hpp"

namespace bspmm {

struct Unit {
  std::size_t first, last;  // of the products, last excluded
};

struct Work {
  std::vector<Product> products;
  std::vector<Unit> units;
  int tile;
};

// products in each unit, at most; 0: all of a C tile. Units never cross C tiles.
Work make_work(const Pattern& pattern, int tile, int products_in_unit);

enum class Variant { blocking, nonblocking };
enum class Computation { yes, no };  // no: the communication alone, zeros are added

// Where a rank's time went. get, update: the calls and, in the blocking variant, their completion. wait: completion in the
// nonblocking variant. counter: until the next unit of work was known.
enum class Row { counter, get, compute, update, wait };
constexpr int kRows = 5;
constexpr const char* kRowNames[kRows] = {"counter", "get", "compute", "update", "wait"};
using Profile = kit::PhaseTimes<Row, kRows>;

// Until the counter has no more units. To be called by all ranks after Store::reset; does not synchronise them at the
// end.
void run(const Work& work, Variant variant, Computation computation, Store& store, Profile& profile);

}  // namespace bspmm
