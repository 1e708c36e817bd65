// SPDX-License-Identifier: BSD-3-Clause
#include "kernel.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <cblas.h>

namespace bspmm {
namespace {

using Tile = std::vector<double>;

class Kernel {
 public:
  Kernel(const Work& work, Computation computation, Store& store, Profile& profile)
      : work_(work), multiplies_(computation == Computation::yes), store_(store), profile_(profile) {
    const std::size_t elements = std::size_t(work.tile) * work.tile;
    for (auto* pair : {&a_, &b_, &c_})
      for (Tile& tile : *pair) tile.assign(elements, 0.0);
  }

  void blocking() {
    for (std::optional<Product> product = next(); product;) {
      profile_.charge(Row::get, [&] {
        get(*product, 0);
        store_.wait();
      });
      multiply(0);
      const std::optional<Product> following = next();
      if (leaves_c(*product, following)) {
        profile_.charge(Row::update, [&] {
          update(*product);
          store_.wait();
        });
      }
      product = following;
    }
  }

  void nonblocking() {
    int now = 0;
    std::optional<Product> product = next();
    if (product) profile_.charge(Row::get, [&] { get(*product, now); });
    profile_.charge(Row::wait, [&] { store_.wait(); });
    while (product) {
      const std::optional<Product> following = next();
      if (following) profile_.charge(Row::get, [&] { get(*following, 1 - now); });
      multiply(now);
      if (leaves_c(*product, following)) profile_.charge(Row::update, [&] { update(*product); });
      profile_.charge(Row::wait, [&] { store_.wait(); });
      product = following;
      now = 1 - now;
    }
  }

 private:
  std::optional<Product> next() {
    if (at_ == last_) {
      const std::int64_t unit = profile_.charge(Row::counter, [&] { return store_.next(); });
      if (unit >= std::int64_t(work_.units.size())) return {};
      at_ = work_.units[unit].first;
      last_ = work_.units[unit].last;
    }
    return work_.products[at_++];
  }

  static bool leaves_c(const Product& product, const std::optional<Product>& following) {
    return !following || following->c != product.c;
  }

  void get(const Product& product, int input) {
    store_.get(Matrix::a, product.a, a_[input].data());
    store_.get(Matrix::b, product.b, b_[input].data());
  }

  void multiply(int input) {
    if (!multiplies_) return;
    const int n = work_.tile;
    profile_.charge(Row::compute, [&] {
      cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0, a_[input].data(), n, b_[input].data(), n,
                  1.0, c_[output_].data(), n);
    });
  }

  // The other C tile, whose own update is complete by now, starts at zero.
  void update(const Product& product) {
    store_.update(product.c, c_[output_].data());
    output_ = 1 - output_;
    std::fill(c_[output_].begin(), c_[output_].end(), 0.0);
  }

  const Work& work_;
  bool multiplies_;
  Store& store_;
  Profile& profile_;
  std::array<Tile, 2> a_, b_, c_;
  int output_ = 0;  // which of c_ is being summed up
  std::size_t at_ = 0, last_ = 0;
};

}  // namespace

Work make_work(const Pattern& pattern, int tile, int products_in_unit) {
  Work work{products(pattern), {}, tile};
  for (std::size_t i = 0; i < work.products.size(); ++i) {
    const bool same_c = i > 0 && work.products[i].c == work.products[i - 1].c;
    const bool room = products_in_unit == 0 ||
                      (same_c && work.units.back().last - work.units.back().first < std::size_t(products_in_unit));
    if (!same_c || !room) work.units.push_back({i, i});
    work.units.back().last = i + 1;
  }
  return work;
}

void run(const Work& work, Variant variant, Computation computation, Store& store, Profile& profile) {
  openblas_set_num_threads(1);  // ranks are the parallelism here
  Kernel kernel(work, computation, store, profile);
  if (variant == Variant::blocking) kernel.blocking();
  if (variant == Variant::nonblocking) kernel.nonblocking();
}

}  // namespace bspmm
