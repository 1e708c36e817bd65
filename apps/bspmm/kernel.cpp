// SPDX-License-Identifier: BSD-3-Clause
#include "kernel.hpp"

#include <algorithm>

namespace bspmm {
namespace {

bool leaves_c(const Product& product, const std::optional<Product>& following) {
  return !following || following->c != product.c;
}

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

Kernel::Kernel(const Work& work, Store& store, Multiplier& multiplier)
    : work_(work), store_(store), multiplier_(multiplier) {
  for (auto* pair : {&a_, &b_, &c_})
    for (double*& tile : *pair) tile = multiplier_.allocate(std::size_t(work.tile) * std::size_t(work.tile));
}

void Kernel::run(Variant variant, Computation computation, Profile& profile) {
  profile_ = &profile;
  multiplies_ = computation == Computation::yes;
  first_ = true;
  at_ = last_ = 0;
  if (!multiplies_)
    for (double* tile : c_) std::fill_n(tile, std::size_t(work_.tile) * std::size_t(work_.tile), 0.0);
  if (variant == Variant::blocking) blocking();
  if (variant == Variant::nonblocking) nonblocking();
}

void Kernel::blocking() {
  for (std::optional<Product> product = next(); product;) {
    profile_->charge(Row::get, [&] {
      get(*product, 0);
      store_.wait();
    });
    begin(0);
    end();
    const std::optional<Product> following = next();
    if (leaves_c(*product, following)) {
      profile_->charge(Row::update, [&] {
        update(*product);
        store_.wait();
      });
    }
    product = following;
  }
}

void Kernel::nonblocking() {
  int now = 0;
  std::optional<Product> product = next();
  if (product) profile_->charge(Row::get, [&] { get(*product, now); });
  wait();
  while (product) {
    const std::optional<Product> following = next();
    if (following) profile_->charge(Row::get, [&] { get(*following, 1 - now); });
    begin(now);
    const auto finish = [&] {
      end();
      if (leaves_c(*product, following)) profile_->charge(Row::update, [&] { update(*product); });
    };
    if (!multiplier_.elsewhere()) finish();
    wait();
    if (multiplier_.elsewhere()) finish();  // what it adds is complete with the next product's tiles
    product = following;
    now = 1 - now;
  }
  wait();
}

std::optional<Product> Kernel::next() {
  if (at_ == last_) {
    const std::int64_t unit = profile_->charge(Row::counter, [&] { return store_.next(); });
    if (unit >= std::int64_t(work_.units.size())) return {};
    at_ = work_.units[unit].first;
    last_ = work_.units[unit].last;
  }
  return work_.products[at_++];
}

void Kernel::get(const Product& product, int input) {
  store_.get(Matrix::a, product.a, a_[input]);
  store_.get(Matrix::b, product.b, b_[input]);
}

void Kernel::begin(int input) {
  if (multiplies_) multiplier_.begin(a_[input], b_[input], c_[output_], first_);
  first_ = false;
}

void Kernel::end() {
  if (!multiplies_) return;
  const auto multiplied = [&] { return multiplier_.end(); };
  profile_->add(Row::compute, profile_->charge(Row::wait, multiplied));
}

// The other C tile, whose own update is complete by now, is next.
void Kernel::update(const Product& product) {
  store_.update(product.c, c_[output_]);
  output_ = 1 - output_;
  first_ = true;
}

void Kernel::wait() {
  profile_->charge(Row::wait, [&] { store_.wait(); });
}

}  // namespace bspmm
