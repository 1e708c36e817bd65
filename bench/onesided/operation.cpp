// SPDX-License-Identifier: BSD-3-Clause
#include "operation.hpp"

#include <algorithm>
#include <cstring>

namespace bench {
namespace {

constexpr char kSpoilt = 0x5a;
constexpr std::int64_t kWord = sizeof(std::int64_t);

std::int64_t whole_words(std::int64_t bytes) { return (bytes + kWord - 1) / kWord * kWord; }

}  // namespace

Operation::Operation(Kind kind, std::int64_t bytes, int messages)
    : kind_(kind == Kind::put_rate ? Kind::put : kind),
      bytes_(bytes),
      messages_(messages),
      data_(whole_words(bytes * messages)),
      check_(data_.size()),
      memory_(flag_offset() + kWord),
      partner_((kit::rank() + kit::ranks() / 2) % kit::ranks()),
      fetched_(messages) {
  std::memset(memory_.base(), 0, flag_offset() + kWord);
  memory_.sync();
  fill(data_.data(), kit::rank(), 0);
  kit::barrier();
}

void Operation::start() {
  for (int i = 0; i < messages_; ++i) {
    const std::int64_t at = i * bytes_;
    if (kind_ == Kind::put) memory_.put(data_.data() + at, bytes_, partner_, at);
    if (kind_ == Kind::get) memory_.get(data_.data() + at, bytes_, partner_, at);
    if (kind_ == Kind::fetch_and_op) memory_.fetch_add(&addend_, &fetched_[i], partner_, 0);
  }
}

void Operation::renew(int round) {
  std::fill(fetched_.begin(), fetched_.end(), -1);
  if (kind_ == Kind::fetch_and_op) return;  // each finds another count
  fill(data_.data(), kit::rank(), round);
  if (kind_ == Kind::put) return;
  memory_.put(data_.data(), bytes_ * messages_, partner_, 0);
  memory_.flush(partner_);
  std::memset(data_.data(), kSpoilt, data_.size());
}

bool Operation::is_right(int round) {
  if (kind_ == Kind::fetch_and_op)
    return std::all_of(fetched_.begin(), fetched_.end(),
                       [this](std::int64_t before) { return before == addend_ * fetches_++; });
  if (kind_ == Kind::put) {
    std::memset(data_.data(), kSpoilt, data_.size());
    memory_.get(data_.data(), bytes_ * messages_, partner_, 0);
    memory_.flush(partner_);
  }
  fill(check_.data(), kit::rank(), round);
  return std::memcmp(data_.data(), check_.data(), bytes_ * messages_) == 0;
}

bool Operation::verify(int last_round, std::int64_t communications) {
  if (is_origin()) return true;
  memory_.sync();
  if (kind_ == Kind::fetch_and_op) {
    std::int64_t count = 0;
    std::memcpy(&count, memory_.base(), kWord);
    return count == addend_ * communications * messages_;
  }
  fill(check_.data(), partner_, last_round);
  return std::memcmp(memory_.base(), check_.data(), bytes_ * messages_) == 0;
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
  if (*flag <= heard_) return false;
  heard_ = *flag;
  return true;
}

void Operation::fill(char* data, int rank, int round) const {
  for (std::int64_t i = 0; i < bytes_ * messages_; ++i) data[i] = char((31 * rank + 7 * round + i) % 251);
}

}  // namespace bench
