// SPDX-License-Identifier: BSD-3-Clause
// The lists of offpath.h (include/offpath/words): whether a number is one of them, what it is called, what there is.
#pragma once

#include <offpath/offpath.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

namespace offpath::base {

template <typename Word>
struct WordRow {
  Word word;
  const char* text;
};
template <typename Word>
struct Words;  // `rows` of an enumeration

template <>
struct Words<offpath_algorithm_t> {
  static constexpr WordRow<offpath_algorithm_t> rows[] = {
#define OFFPATH_ALGORITHM(NAME, number, text, about) {OFFPATH_ALGORITHM_##NAME, text},
#include <offpath/words/algorithms.def>
  };
};

template <>
struct Words<offpath_collective_kind_t> {
  static constexpr WordRow<offpath_collective_kind_t> rows[] = {
#define OFFPATH_COLLECTIVE_KIND(NAME, number, text, about) {OFFPATH_##NAME, text},
#include <offpath/words/collective_kinds.def>
  };
};

template <>
struct Words<offpath_operator_t> {
  static constexpr WordRow<offpath_operator_t> rows[] = {
#define OFFPATH_OPERATOR(NAME, number, text, about) {OFFPATH_OP_##NAME, text},
#include <offpath/words/operators.def>
  };
};

template <>
struct Words<offpath_element_t> {
  static constexpr WordRow<offpath_element_t> rows[] = {
#define OFFPATH_ELEMENT(NAME, number, made, about) {OFFPATH_ELEMENT_##NAME, #NAME},
#include <offpath/words/elements.def>
  };
};

template <>
struct Words<offpath_remote_kind_t> {
  static constexpr WordRow<offpath_remote_kind_t> rows[] = {
#define OFFPATH_REMOTE_KIND(NAME, number, text, does, about) {OFFPATH_##NAME, text},
#include <offpath/words/remote_kinds.def>
  };
};

// Whether the numbers ascend by one: a number less the first one is its row.
template <typename Word>
constexpr bool is_dense() {
  int32_t expected = Words<Word>::rows[0].word;
  for (const auto& row : Words<Word>::rows) {
    if (static_cast<int32_t>(row.word) != expected++) return false;
  }
  return true;
}

// How many numbers there are from 0 on, for tables by number.
template <typename Word>
inline constexpr size_t kWordsEnd = static_cast<size_t>(std::end(Words<Word>::rows)[-1].word) + 1;

template <typename Word>
inline constexpr size_t kWords = std::size(Words<Word>::rows);

// Of a number that somebody else has written.
template <typename Word>
constexpr bool is_word(uint32_t number) {
  static_assert(is_dense<Word>());
  return number - static_cast<uint32_t>(Words<Word>::rows[0].word) < kWords<Word>;
}

// Precondition: is_word().
template <typename Word>
constexpr const char* text_of(Word word) {
  static_assert(is_dense<Word>());
  return Words<Word>::rows[static_cast<int32_t>(word) - static_cast<int32_t>(Words<Word>::rows[0].word)].text;
}

// The errors of offpath_status_t are the numbers from -1 down to this one.
inline constexpr int32_t kLastError = 0
#define OFFPATH_STATUS(NAME, number, text, about) -((number) < 0 ? 1 : 0)
#include <offpath/words/statuses.def>
    ;

// "default, direct": those that `fits`.
template <typename Word, typename Fits>
std::string texts_of(const Fits& fits) {
  std::string texts;
  for (const auto& row : Words<Word>::rows) {
    if (fits(row.word)) texts += (texts.empty() ? "" : ", ") + std::string(row.text);
  }
  return texts;
}

}  // namespace offpath::base
