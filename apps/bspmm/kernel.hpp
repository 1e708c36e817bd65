// SPDX-License-Identifier: BSD-3-Clause
// Get, compute, update, as in NWChem's tensor contractions; both variants after the pseudo code of Michalowicz et al.
// (HiPC 2024, pp. 23-33).
//
// A rank takes a unit of work, a run of products of one tile of C, from the shared counter. Blocking: gets A and B,
// waits, multiplies. Nonblocking: gets those of the next product, multiplies the current one, then waits. What it made
// of a tile of C is added to it when the next product is of another. No MPI is called in the middle of a
// multiplication. Products that are multiplied elsewhere (multiplier.hpp) leave the rank these calls and the waits.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "../kit/clocks.hpp"
#include "multiplier.hpp"
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
// nonblocking variant, and of products that are multiplied elsewhere. compute: multiplying, wherever. counter: until the next
// unit of work was known.
enum class Row { counter, get, compute, update, wait };
constexpr int kRows = 5;
constexpr const char* kRowNames[kRows] = {"counter", "get", "compute", "update", "wait"};
using Profile = kit::PhaseTimes<Row, kRows>;

class Kernel {
 public:
  // All three are used as long as this lives.
  Kernel(const Work& work, Store& store, Multiplier& multiplier);

  // Until the counter has no more units. To be called by all ranks after Store::reset; does not synchronise them at the
  // end.
  void run(Variant variant, Computation computation, Profile& profile);

 private:
  void blocking();
  void nonblocking();
  std::optional<Product> next();
  void get(const Product& product, int input);
  void begin(int input);
  void end();
  void update(const Product& product);
  void wait();

  const Work& work_;
  Store& store_;
  Multiplier& multiplier_;
  std::array<double*, 2> a_, b_, c_;
  Profile* profile_ = nullptr;
  bool multiplies_ = true;
  int output_ = 0;     // which of c_ is being summed up
  bool first_ = true;  // nothing is in it yet
  std::size_t at_ = 0, last_ = 0;
};

}  // namespace bspmm
