// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/reduce.hpp"

#include "base/words.hpp"

#include <array>
#include <cstring>
#include <type_traits>

namespace offpath::kernels {
namespace {

template <typename T>
struct Complex {
  T re, im;
};

template <typename Value, typename Index>
struct Pair {
  Value value;
  Index index;
};

// Integers wrap, as the processor does it: in unsigned arithmetic, of int's width at least.
template <typename T>
using Wrapping = std::common_type_t<std::make_unsigned_t<T>, unsigned>;

struct Sum {
  template <typename T>
  static T apply(T l, T r) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(l) + static_cast<Wrapping<T>>(r));
    } else {
      return l + r;
    }
  }
  template <typename T>
  static Complex<T> apply(Complex<T> l, Complex<T> r) {
    return {l.re + r.re, l.im + r.im};
  }
};

struct Prod {
  template <typename T>
  static T apply(T l, T r) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(l) * static_cast<Wrapping<T>>(r));
    } else {
      return l * r;
    }
  }
  template <typename T>
  static Complex<T> apply(Complex<T> l, Complex<T> r) {
    return {l.re * r.re - l.im * r.im, l.re * r.im + l.im * r.re};
  }
};

struct Min {
  template <typename T>
  static T apply(T l, T r) {
    return l < r ? l : r;
  }
};
struct Max {
  template <typename T>
  static T apply(T l, T r) {
    return l > r ? l : r;
  }
};
struct Band {
  template <typename T>
  static T apply(T l, T r) {
    return static_cast<T>(l & r);
  }
};
struct Bor {
  template <typename T>
  static T apply(T l, T r) {
    return static_cast<T>(l | r);
  }
};
struct Bxor {
  template <typename T>
  static T apply(T l, T r) {
    return static_cast<T>(l ^ r);
  }
};
struct Land {
  template <typename T>
  static T apply(T l, T r) {
    return static_cast<T>((l != 0) & (r != 0));
  }
};
struct Lor {
  template <typename T>
  static T apply(T l, T r) {
    return static_cast<T>((l != 0) | (r != 0));
  }
};
struct Lxor {
  template <typename T>
  static T apply(T l, T r) {
    return static_cast<T>((l != 0) != (r != 0));
  }
};
struct Minloc {
  template <typename V, typename I>
  static Pair<V, I> apply(Pair<V, I> l, Pair<V, I> r) {
    const bool left = l.value < r.value || (!(r.value < l.value) && !(r.index < l.index));
    return left ? l : r;
  }
};
struct Maxloc {
  template <typename V, typename I>
  static Pair<V, I> apply(Pair<V, I> l, Pair<V, I> r) {
    const bool left = l.value > r.value || (!(r.value > l.value) && !(r.index < l.index));
    return left ? l : r;
  }
};
struct Replace {
  template <typename T>
  static T apply(T, T r) {
    return r;
  }
};
struct Keep {
  template <typename T>
  static T apply(T l, T) {
    return l;
  }
};

using Kernel = void (*)(const uint8_t* left, const uint8_t* right, uint8_t* result, size_t bytes);

// The result is an operand or apart from both, so no iteration sees what another one has written.
template <typename Operator, typename T>
void run(const uint8_t* left, const uint8_t* right, uint8_t* result, size_t bytes) {
#pragma GCC ivdep
  for (size_t at = 0; at < bytes; at += sizeof(T)) {
    T l, r;
    memcpy(&l, left + at, sizeof(T));
    memcpy(&r, right + at, sizeof(T));
    const T combined = Operator::apply(l, r);
    memcpy(result + at, &combined, sizeof(T));
  }
}

constexpr size_t kOperators = base::kWordsEnd<offpath_operator_t>;
constexpr size_t kElements = base::kWordsEnd<offpath_element_t>;

struct Element {
  size_t bytes = 0;
  std::array<Kernel, kOperators> kernels{};  // null: not defined
};

template <typename T>
constexpr void add_arithmetic(Element& row) {
  row.kernels[OFFPATH_OP_SUM] = run<Sum, T>;
  row.kernels[OFFPATH_OP_PROD] = run<Prod, T>;
}

template <typename T>
constexpr Element number() {
  Element row{sizeof(T)};
  add_arithmetic<T>(row);
  row.kernels[OFFPATH_OP_MIN] = run<Min, T>;
  row.kernels[OFFPATH_OP_MAX] = run<Max, T>;
  row.kernels[OFFPATH_OP_LAND] = run<Land, T>;
  row.kernels[OFFPATH_OP_LOR] = run<Lor, T>;
  row.kernels[OFFPATH_OP_LXOR] = run<Lxor, T>;
  if constexpr (std::is_integral_v<T>) {
    row.kernels[OFFPATH_OP_BAND] = run<Band, T>;
    row.kernels[OFFPATH_OP_BOR] = run<Bor, T>;
    row.kernels[OFFPATH_OP_BXOR] = run<Bxor, T>;
  }
  return row;
}

template <typename T>
constexpr Element complex() {
  Element row{sizeof(Complex<T>)};
  add_arithmetic<Complex<T>>(row);
  return row;
}

template <typename Value, typename Index>
constexpr Element pair() {
  Element row{sizeof(Pair<Value, Index>)};
  row.kernels[OFFPATH_OP_MINLOC] = run<Minloc, Pair<Value, Index>>;
  row.kernels[OFFPATH_OP_MAXLOC] = run<Maxloc, Pair<Value, Index>>;
  return row;
}

constexpr std::array<Element, kElements> kTable = [] {
  std::array<Element, kElements> t{};
#define NOTHING Element()
#define NUMBER(T) number<T>()
#define COMPLEX(T) complex<T>()
#define PAIR(Value, Index) pair<Value, Index>()
#define OFFPATH_ELEMENT(NAME, number, made, about) t[OFFPATH_ELEMENT_##NAME] = made;
#include <offpath/words/elements.def>
#undef NOTHING
#undef NUMBER
#undef COMPLEX
#undef PAIR
  for (Element& row : t) {  // byte by byte: whatever an element is, it stays what it was
    if (row.bytes == 0) continue;
    row.kernels[OFFPATH_OP_REPLACE] = run<Replace, uint8_t>;
    row.kernels[OFFPATH_OP_NO_OP] = run<Keep, uint8_t>;
  }
  return t;
}();

// Chunks are cut between elements, so a chunk of any power of two must hold whole ones.
static_assert([] {
  for (const Element& element : kTable) {
    if ((element.bytes & (element.bytes - 1)) != 0) return false;
  }
  return true;
}());

}  // namespace

size_t element_bytes(offpath_element_t element) {
  const auto index = static_cast<size_t>(static_cast<uint32_t>(element));
  return index < kElements ? kTable[index].bytes : 0;
}

bool supported(const Reduction& reduction) {
  const auto element = static_cast<size_t>(static_cast<uint32_t>(reduction.element));
  const auto op = static_cast<size_t>(static_cast<uint32_t>(reduction.op));
  return element < kElements && op < kOperators && kTable[element].kernels[op] != nullptr;
}

void combine(const Reduction& reduction, const void* left, const void* right, void* result, size_t bytes) {
  kTable[reduction.element].kernels[reduction.op](static_cast<const uint8_t*>(left), static_cast<const uint8_t*>(right),
                                                  static_cast<uint8_t*>(result), bytes);
}

}  // namespace offpath::kernels
