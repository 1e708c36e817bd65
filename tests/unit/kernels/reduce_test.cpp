// SPDX-License-Identifier: BSD-3-Clause
// Every operator on every element type against the definition written down naively, and what must not change results:
// which operand is overwritten, alignment, length.
#include "kernels/reduce.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <vector>

namespace offpath::kernels {
namespace {

using Bytes = std::vector<uint8_t>;

template <typename V, typename I>
struct Pair {
  V value;
  I index;
};

// One element type: its size, random elements, equality, and the operators it has, one element at a time.
struct Reference {
  size_t bytes;
  std::function<void(std::mt19937_64&, void*)> draw;
  std::function<bool(const void*, const void*)> equal;
  std::map<offpath_operator_t, std::function<void(const void*, const void*, void*)>> operators;
};

template <typename T>
T load(const void* from) {
  T value;
  memcpy(&value, from, sizeof(T));
  return value;
}
template <typename T>
void store(void* to, const T& value) {
  memcpy(to, &value, sizeof(T));
}
template <typename T, typename F>
std::function<void(const void*, const void*, void*)> binary(F f) {
  return [f](const void* l, const void* r, void* out) { store<T>(out, static_cast<T>(f(load<T>(l), load<T>(r)))); };
}

// A few small values among arbitrary ones, so that zeros and ties happen.
template <typename T>
T draw_number(std::mt19937_64& random) {
  if (random() % 3 == 0) return static_cast<T>(random() % 3);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random());
  } else {
    return static_cast<T>(static_cast<double>(static_cast<int64_t>(random())) / 1e15);
  }
}

template <typename T>
void add_order(Reference& reference) {
  reference.operators[OFFPATH_OP_MIN] = binary<T>([](T l, T r) { return l < r ? l : r; });
  reference.operators[OFFPATH_OP_MAX] = binary<T>([](T l, T r) { return l > r ? l : r; });
}

template <typename T>
void add_logic(Reference& reference) {
  reference.operators[OFFPATH_OP_LAND] = binary<T>([](T l, T r) { return l && r; });
  reference.operators[OFFPATH_OP_LOR] = binary<T>([](T l, T r) { return l || r; });
  reference.operators[OFFPATH_OP_LXOR] = binary<T>([](T l, T r) { return !l != !r; });
}

template <typename T>
Reference integer() {
  Reference x{sizeof(T),
              [](auto& random, void* to) { store<T>(to, draw_number<T>(random)); },
              [](const void* a, const void* b) { return load<T>(a) == load<T>(b); },
              {}};
  // Modulo 2^64, then cut: what wrapping means.
  x.operators[OFFPATH_OP_SUM] =
      binary<T>([](T l, T r) { return static_cast<T>(static_cast<uint64_t>(l) + static_cast<uint64_t>(r)); });
  x.operators[OFFPATH_OP_PROD] =
      binary<T>([](T l, T r) { return static_cast<T>(static_cast<uint64_t>(l) * static_cast<uint64_t>(r)); });
  add_order<T>(x);
  x.operators[OFFPATH_OP_BAND] = binary<T>([](T l, T r) { return l & r; });
  x.operators[OFFPATH_OP_BOR] = binary<T>([](T l, T r) { return l | r; });
  x.operators[OFFPATH_OP_BXOR] = binary<T>([](T l, T r) { return l ^ r; });
  add_logic<T>(x);
  return x;
}

template <typename T>
Reference real() {
  Reference x{sizeof(T),
              [](auto& random, void* to) { store<T>(to, draw_number<T>(random)); },
              [](const void* a, const void* b) { return load<T>(a) == load<T>(b); },
              {}};
  x.operators[OFFPATH_OP_SUM] = binary<T>(std::plus<T>());
  x.operators[OFFPATH_OP_PROD] = binary<T>(std::multiplies<T>());
  add_order<T>(x);
  add_logic<T>(x);
  return x;
}

template <typename T>
Reference complex() {
  using C = std::complex<T>;
  Reference x{sizeof(C),
              [](auto& random, void* to) { store(to, C(draw_number<T>(random), draw_number<T>(random))); },
              [](const void* a, const void* b) {
                const C p = load<C>(a), q = load<C>(b);
                return std::abs(p - q) <= 8 * std::numeric_limits<T>::epsilon() * (1 + std::abs(p));
              },
              {}};
  x.operators[OFFPATH_OP_SUM] = binary<C>(std::plus<C>());
  x.operators[OFFPATH_OP_PROD] = binary<C>(std::multiplies<C>());
  return x;
}

template <typename V, typename I>
Reference pair() {
  using P = Pair<V, I>;
  Reference x{sizeof(P),
              [](auto& random, void* to) {
                P p{};
                p.value = draw_number<V>(random), p.index = static_cast<I>(random() % 100);
                store(to, p);
              },
              [](const void* a, const void* b) {
                return load<P>(a).value == load<P>(b).value && load<P>(a).index == load<P>(b).index;
              },
              {}};
  const auto either = [](const P& l, const P& r, bool left_wins, bool right_wins) {
    if (left_wins) return l;
    if (right_wins) return r;
    return l.index <= r.index ? l : r;
  };
  x.operators[OFFPATH_OP_MINLOC] =
      binary<P>([=](const P& l, const P& r) { return either(l, r, l.value < r.value, r.value < l.value); });
  x.operators[OFFPATH_OP_MAXLOC] =
      binary<P>([=](const P& l, const P& r) { return either(l, r, l.value > r.value, r.value > l.value); });
  return x;
}

// What every element type has: one of the operands, bit by bit.
std::map<offpath_element_t, Reference> with_one_sided(std::map<offpath_element_t, Reference> all) {
  for (auto& [element, reference] : all) {
    const size_t bytes = reference.bytes;
    reference.operators[OFFPATH_OP_REPLACE] = [=](const void*, const void* r, void* out) { memcpy(out, r, bytes); };
    reference.operators[OFFPATH_OP_NO_OP] = [=](const void* l, const void*, void* out) { memcpy(out, l, bytes); };
  }
  return all;
}

const std::map<offpath_element_t, Reference>& references() {
  static const std::map<offpath_element_t, Reference> all = with_one_sided({
      {OFFPATH_ELEMENT_I8, integer<int8_t>()},
      {OFFPATH_ELEMENT_I16, integer<int16_t>()},
      {OFFPATH_ELEMENT_I32, integer<int32_t>()},
      {OFFPATH_ELEMENT_I64, integer<int64_t>()},
      {OFFPATH_ELEMENT_U8, integer<uint8_t>()},
      {OFFPATH_ELEMENT_U16, integer<uint16_t>()},
      {OFFPATH_ELEMENT_U32, integer<uint32_t>()},
      {OFFPATH_ELEMENT_U64, integer<uint64_t>()},
      {OFFPATH_ELEMENT_F32, real<float>()},
      {OFFPATH_ELEMENT_F64, real<double>()},
      {OFFPATH_ELEMENT_FLONG, real<long double>()},
      {OFFPATH_ELEMENT_C32, complex<float>()},
      {OFFPATH_ELEMENT_C64, complex<double>()},
      {OFFPATH_ELEMENT_CLONG, complex<long double>()},
      {OFFPATH_ELEMENT_F32_I32, pair<float, int>()},
      {OFFPATH_ELEMENT_F64_I32, pair<double, int>()},
      {OFFPATH_ELEMENT_I64_I32, pair<int64_t, int>()},
      {OFFPATH_ELEMENT_I32_I32, pair<int, int>()},
      {OFFPATH_ELEMENT_I16_I32, pair<int16_t, int>()},
      {OFFPATH_ELEMENT_FLONG_I32, pair<long double, int>()},
      {OFFPATH_ELEMENT_F32_F32, pair<float, float>()},
      {OFFPATH_ELEMENT_F64_F64, pair<double, double>()},
  });
  return all;
}

TEST(Reduce, KnowsExactlyWhatLibrariesDo) {
  for (int element = 0; element < 32; ++element) {
    for (int op = 0; op < 16; ++op) {
      const Reduction reduction{static_cast<offpath_operator_t>(op), static_cast<offpath_element_t>(element)};
      const auto it = references().find(reduction.element);
      const bool expected = it != references().end() && it->second.operators.contains(reduction.op);
      EXPECT_EQ(supported(reduction), expected) << "operator " << op << " element " << element;
    }
    const auto it = references().find(static_cast<offpath_element_t>(element));
    EXPECT_EQ(element_bytes(static_cast<offpath_element_t>(element)), it == references().end() ? 0 : it->second.bytes);
  }
}

enum class Into { apart, left, right, both_same };

void check(const Reduction& reduction, const Reference& reference, size_t count, size_t shift, Into into,
           std::mt19937_64& random) {
  const size_t bytes = count * reference.bytes;
  constexpr uint8_t kGuard = 0xC7;
  Bytes a(bytes + 64, kGuard), b(bytes + 64, kGuard), c(bytes + 64, kGuard);
  uint8_t* left = a.data() + shift % 17;
  uint8_t* right = into == Into::both_same ? left : b.data() + shift * 3 % 17;
  uint8_t* result = into == Into::apart ? c.data() + shift * 5 % 17 : into == Into::right ? right : left;
  Bytes expected(bytes);
  for (size_t at = 0; at < bytes; at += reference.bytes) {
    reference.draw(random, left + at);
    if (right != left) reference.draw(random, right + at);
    reference.operators.at(reduction.op)(left + at, right + at, expected.data() + at);
  }
  combine(reduction, left, right, result, bytes);
  for (size_t at = 0; at < bytes; at += reference.bytes) {
    ASSERT_TRUE(reference.equal(result + at, expected.data() + at))
        << "operator " << reduction.op << " element " << reduction.element << " number " << at / reference.bytes
        << " of " << count << " shift " << shift << " into " << static_cast<int>(into);
  }
  const auto& written = result == left ? a : result == right ? b : c;
  EXPECT_TRUE(std::all_of(written.data(), static_cast<const uint8_t*>(result), [](uint8_t x) { return x == kGuard; }));
  EXPECT_TRUE(std::all_of(static_cast<const uint8_t*>(result) + bytes, written.data() + written.size(),
                          [](uint8_t x) { return x == kGuard; }));
}

TEST(Reduce, MatchesTheDefinition) {
  std::mt19937_64 random(3);
  for (const auto& [element, reference] : references()) {
    for (const auto& [op, definition] : reference.operators) {
      for (const size_t count : {0, 1, 2, 3, 7, 16, 33, 257}) {
        for (const Into into : {Into::apart, Into::left, Into::right, Into::both_same}) {
          for (const size_t shift : {0, 1, 3, 8}) {
            check({op, element}, reference, count, shift, into, random);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

// A result may not depend on where in the vector an element stands (vector body or tail), bit for bit.
TEST(Reduce, IsTheSameWhereverAnElementStands) {
  std::mt19937_64 random(4);
  for (const offpath_element_t element : {OFFPATH_ELEMENT_F32, OFFPATH_ELEMENT_F64, OFFPATH_ELEMENT_C32}) {
    const Reference& reference = references().at(element);
    for (const auto& [op, definition] : reference.operators) {
      Bytes left(reference.bytes * 101), right(left.size()), whole(left.size()), single(left.size());
      for (size_t at = 0; at < left.size(); at += reference.bytes) {
        reference.draw(random, &left[at]), reference.draw(random, &right[at]);
      }
      combine({op, element}, left.data(), right.data(), whole.data(), left.size());
      for (size_t at = 0; at < left.size(); at += reference.bytes) {
        combine({op, element}, &left[at], &right[at], &single[at], reference.bytes);
      }
      EXPECT_EQ(whole, single) << "operator " << op << " element " << element;
    }
  }
}

TEST(Reduce, IntegersWrap) {
  const auto sum = [](auto l, auto r, offpath_operator_t op, offpath_element_t element) {
    decltype(l) out{};
    combine({op, element}, &l, &r, &out, sizeof(out));
    return out;
  };
  EXPECT_EQ(sum(INT32_MAX, 1, OFFPATH_OP_SUM, OFFPATH_ELEMENT_I32), INT32_MIN);
  EXPECT_EQ(sum(INT64_MIN, int64_t{-1}, OFFPATH_OP_SUM, OFFPATH_ELEMENT_I64), INT64_MAX);
  EXPECT_EQ(sum(uint16_t{0xFFFF}, uint16_t{0xFFFF}, OFFPATH_OP_PROD, OFFPATH_ELEMENT_U16), 1);
  EXPECT_EQ(sum(int8_t{-128}, int8_t{-1}, OFFPATH_OP_PROD, OFFPATH_ELEMENT_I8), -128);
}

// Left operand first: for values that neither wins, what comes out shows the order.
TEST(Reduce, KeepsTheOrderOfTheOperands) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double one = 1;
  double out = 0;
  combine({OFFPATH_OP_MIN, OFFPATH_ELEMENT_F64}, &nan, &one, &out, sizeof(out));
  EXPECT_EQ(out, 1) << "nan < 1 is false: the right one";
  combine({OFFPATH_OP_MIN, OFFPATH_ELEMENT_F64}, &one, &nan, &out, sizeof(out));
  EXPECT_TRUE(std::isnan(out));
  const double zeros[2] = {0.0, -0.0};
  combine({OFFPATH_OP_MAX, OFFPATH_ELEMENT_F64}, &zeros[0], &zeros[1], &out, sizeof(out));
  EXPECT_TRUE(std::signbit(out)) << "0 > -0 is false: the right one";
}

// Signalling NaNs, padding and all.
TEST(Reduce, ReplacingMovesEveryBit) {
  std::mt19937_64 random(5);
  for (const auto& [element, reference] : references()) {
    Bytes left(reference.bytes * 9), right(left.size()), result(left.size());
    for (size_t i = 0; i < left.size(); ++i) {
      left[i] = static_cast<uint8_t>(random()), right[i] = static_cast<uint8_t>(random());
    }
    combine({OFFPATH_OP_REPLACE, element}, left.data(), right.data(), result.data(), result.size());
    EXPECT_EQ(result, right) << "element " << element;
    combine({OFFPATH_OP_NO_OP, element}, left.data(), right.data(), result.data(), result.size());
    EXPECT_EQ(result, left) << "element " << element;
    EXPECT_TRUE(one_sided_only(OFFPATH_OP_REPLACE) && one_sided_only(OFFPATH_OP_NO_OP));
  }
}

}  // namespace
}  // namespace offpath::kernels
