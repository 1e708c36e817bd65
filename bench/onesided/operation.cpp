// SPDX-License-Identifier: BSD-3-Clause
#include "operation.hpp"

#include <algorithm>
#include <cstring>

namespace bench {
namespace {

constexpr char kSpoilt = 0x5a;
constexpr std::int64_t kWord = sizeof(std::int64_t);

std::int64_t first_count(int round) { return 1000LL * round; }
std::int64_t addend(int round) { return 7 + round; }

std::int64_t whole_words(std::int64_t bytes) { return (bytes + kWord - 1) / kWord * kWord; }

}  // namespace

Operation::Operation(Kind kind, std::int64_t bytes, int messages)
    : kind_(kind),
      bytes_(bytes),
      messages_(messages),
      data_(whole_words(bytes * messages)),
      memory_(flag_offset() + kWord),
      partner_((rma::rank() + rma::ranks() / 2) % rma::ranks()),
      fetched_(messages) {
  std::memset(memory_.base(), 0, flag_offset() + kWord);
  prepare(0);
  rma::barrier();
}

void Operation::start() {
  for (int i = 0; i < messages_; ++i) {
    const std::int64_t at = i * bytes_;
    if (kind_ == Kind::put) memory_.put(data_.data() + at, bytes_, partner_, at);
    if (kind_ == Kind::get) memory_.get(data_.data() + at, bytes_, partner_, at);
    if (kind_ == Kind::fetch_and_op) memory_.fetch_add(&addend_, &fetched_[i], partner_, 0);
  }
}

void Operation::prepare(int round) {
  addend_ = addend(round);
  char* const mine = is_origin() ? data_.data() : memory_.base();
  const bool source = is_origin() ? kind_ == Kind::put : kind_ == Kind::get;
  if (source) fill(mine, rma::rank(), round);
  if (!source) std::memset(mine, kSpoilt, bytes_ * messages_);
  if (kind_ == Kind::fetch_and_op) {
    const std::int64_t count = first_count(round);
    std::memcpy(mine, &count, kWord);
    std::fill(fetched_.begin(), fetched_.end(), -1);
  }
  memory_.sync();
}

bool Operation::verify(int round) {
  memory_.sync();
  if (kind_ == Kind::fetch_and_op) {
    if (!is_origin()) return counter() == first_count(round) + messages_ * addend(round);
    for (int i = 0; i < messages_; ++i)
      if (fetched_[i] != first_count(round) + i * addend(round)) return false;
    return true;
  }
  const bool arrives_here = is_origin() == (kind_ == Kind::get);
  if (!arrives_here) return true;
  std::vector<char> expected(bytes_ * messages_);
  fill(expected.data(), partner_, round);
  return std::memcmp(is_origin() ? data_.data() : memory_.base(), expected.data(), expected.size()) == 0;
}

void Operation::tell_target() {
  const std::int64_t one = 1;
  std::int64_t before = 0;
  memory_.fetch_add(&one, &before, partner_, flag_offset());
  memory_.flush(partner_);
}

bool Operation::was_told() {
  memory_.sync();
  const auto* flag = reinterpret_cast<const volatile std::int64_t*>(memory_.base() + flag_offset());
  return *flag != 0;
}

void Operation::fill(char* data, int rank, int round) const {
  for (std::int64_t i = 0; i < bytes_ * messages_; ++i) data[i] = char((31 * rank + 7 * round + i) % 251);
}

std::int64_t Operation::counter() const {
  std::int64_t count = 0;
  std::memcpy(&count, memory_.base(), kWord);
  return count;
}

const std::vector<NamedOperation>& operations() {
  static const std::vector<NamedOperation> all = {
      {"put", Operation::Kind::put, false},
      {"get", Operation::Kind::get, false},
      {"fetch_and_op", Operation::Kind::fetch_and_op, false},
      {"put_rate", Operation::Kind::put, true},
  };
  return all;
}

}  // namespace bench
