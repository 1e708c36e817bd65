// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <numeric>

#include "structure.hpp"

namespace minimd {
namespace {

// Ghosts in the order of cells, side by side in memory.
struct OrderedGhosts {
  std::vector<int> start, index;
  std::vector<double> x;

  OrderedGhosts(const Atoms& atoms, const Cells& cells)
      : start(std::size_t(cells.total()) + 1, 0), index(std::size_t(atoms.ghost)), x(3 * std::size_t(atoms.ghost)) {
    std::vector<int> cell(std::size_t(atoms.ghost), 0);
    for (int g = 0; g < atoms.ghost; ++g)
      ++start[std::size_t(cell[g] = cells.index(&atoms.x[3 * std::size_t(atoms.local + g)])) + 1];
    std::partial_sum(start.begin(), start.end(), start.begin());
    std::vector<int> next(start.begin(), start.end() - 1);
    for (int g = 0; g < atoms.ghost; ++g) {
      const std::size_t to = std::size_t(next[cell[g]]++);
      index[to] = atoms.local + g;
      for (int k = 0; k < 3; ++k) x[3 * to + k] = atoms.x[3 * std::size_t(atoms.local + g) + k];
    }
  }
};

class Builder {
 public:
  Builder(const Atoms& atoms, const Domain& domain, const Cells& cells, const std::vector<int>& start, double reach)
      : atoms_(atoms), domain_(domain), cells_(cells), start_(start), ghosts_(atoms, cells), reach_(reach) {}

  // Writes the neighbours of atom i to `out`, which has room for all atoms; returns its end.
  int* write(int i, int* out) const {
    const double* const xi = &atoms_.x[3 * std::size_t(i)];
    const int cell[3] = {cells_.coordinate(0, xi[0]), cells_.coordinate(1, xi[1]), cells_.coordinate(2, xi[2])};
    out = own_row(i, xi, out, i + 1, end_of_row(start_, row(cell, 0, 0)));
    for (int dy = 1; dy <= Cells::kAround; ++dy) out = own_row(i, xi, out, row(cell, dy, 0));
    for (int dz = 1; dz <= Cells::kAround; ++dz)
      for (int dy = -Cells::kAround; dy <= Cells::kAround; ++dy) out = own_row(i, xi, out, row(cell, dy, dz));
    if (!near_a_face(xi)) return out;
    for (int dz = -Cells::kAround; dz <= Cells::kAround; ++dz)
      for (int dy = -Cells::kAround; dy <= Cells::kAround; ++dy) out = ghost_row(xi, out, row(cell, dy, dz));
    return out;
  }

 private:
  // The cell in the middle of a row of cells, which lie side by side in memory. Own atoms are never in the outermost
  // cells, so a row never leaves the grid.
  int row(const int* cell, int dy, int dz) const {
    return ((cell[2] + dz) * cells_.count[1] + cell[1] + dy) * cells_.count[0] + cell[0];
  }
  static int begin_of_row(const std::vector<int>& start, int middle) { return start[middle - Cells::kAround]; }
  static int end_of_row(const std::vector<int>& start, int middle) { return start[middle + Cells::kAround + 1]; }

  int* own_row(int i, const double* xi, int* out, int middle) const {
    return own_row(i, xi, out, begin_of_row(start_, middle), end_of_row(start_, middle));
  }
  int* own_row(int, const double* xi, int* out, int begin, int end) const {
    const double* x = &atoms_.x[3 * std::size_t(begin)];
    for (int j = begin; j < end; ++j, x += 3) {
      *out = j;  // kept if it is near: no branch that nobody can foresee
      out += near(xi, x);
    }
    return out;
  }
  int* ghost_row(const double* xi, int* out, int middle) const {
    const int end = end_of_row(ghosts_.start, middle);
    for (int g = begin_of_row(ghosts_.start, middle); g < end; ++g) {
      const double* x = &ghosts_.x[3 * std::size_t(g)];
      *out = ghosts_.index[g];
      out += near(xi, x) & above(x, xi);
    }
    return out;
  }
  int near(const double* a, const double* b) const {
    const double dx = a[0] - b[0], dy = a[1] - b[1], dz = a[2] - b[2];
    return dx * dx + dy * dy + dz * dz <= reach_ * reach_;
  }
  static int above(const double* a, const double* b) {
    return a[2] != b[2] ? a[2] > b[2] : a[1] != b[1] ? a[1] > b[1] : a[0] > b[0];
  }
  bool near_a_face(const double* x) const {
    for (int d = 0; d < 3; ++d)
      if (x[d] - reach_ < domain_.lo[d] || x[d] + reach_ >= domain_.hi[d]) return true;
    return false;
  }

  const Atoms& atoms_;
  const Domain& domain_;
  const Cells& cells_;
  const std::vector<int>& start_;
  const OrderedGhosts ghosts_;
  const double reach_;
};

}  // namespace

void build_list(const Atoms& atoms, const Domain& domain, const Cells& cells, const std::vector<int>& start,
                double reach, Structure& s) {
  const Builder builder(atoms, domain, cells, start, reach);
  s.first.resize(std::size_t(atoms.local) + 1);
  std::size_t used = 0;
  // An atom has a bounded number of others around it, but only physics says so: room is made before each one.
  const std::size_t most = std::size_t(atoms.all());
  constexpr std::size_t kUsual = 512;
  std::vector<int> around(most + 1);
  for (int i = 0; i < atoms.local; ++i) {
    s.first[i] = int(used);
    const int* const end = builder.write(i, around.data());
    const std::size_t count = std::size_t(end - around.data());
    if (s.neighbours.size() < used + count) s.neighbours.resize((used + count) * 5 / 4 + kUsual);
    std::copy(around.data(), around.data() + count, s.neighbours.data() + used);
    used += count;
  }
  s.first[atoms.local] = int(used);
}

}  // namespace minimd
