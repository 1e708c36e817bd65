// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/rma/at_home.hpp"

#include "memory/port.hpp"

#include <exception>
#include <utility>

namespace offpath::mpi {
namespace {

uint64_t number_of(const void* address) { return reinterpret_cast<uint64_t>(address); }

}  // namespace

AtHome::AtHome(int size, bool dynamic, const void* base, uint64_t bytes)
    : home_(static_cast<uint32_t>(size), dynamic, number_of(base), memory::make_direct()) {
  if (!dynamic) attach(base, bytes);
}

bool AtHome::attach(const void* base, uint64_t bytes) { return home_.attach(number_of(base), bytes); }

bool AtHome::detach(const void* base) { return home_.detach(number_of(base)); }

void AtHome::take_over(std::span<uint8_t> journal) {
  home_.take_over(journal);
  serves_ = true;
}

void AtHome::forget(int member) {
  home_.forget(static_cast<uint32_t>(member));
  locking_.erase(member);
  std::erase_if(asked_, [member](const Letter& question) { return question.from == member; });
}

void AtHome::serve(Letters& letters) {
  if (!serves_) return;
  for (; !asked_.empty(); asked_.pop_front()) answer(asked_.front(), letters);
  for (const uint32_t member : home_.grant()) {
    const auto found = locking_.extract(static_cast<int>(member));
    if (!found.empty()) letters.send(found.key(), {.said = Letter::Said::granted, .id = found.mapped()});
  }
}

void AtHome::answer(const Letter& question, Letters& letters) {
  using enum Letter::Said;
  const auto from = static_cast<uint32_t>(question.from);
  const Letter::Head& head = question.head;
  if (head.said == lock_shared || head.said == lock_exclusive) return lock(question, letters);
  if (head.said == unlock) {
    return letters.send(question.from, {.said = granted, .status = home_.unlock(from).code(), .id = head.id});
  }
  ops::onesided::Home::Outcome outcome;
  if (head.status != OFFPATH_OK) {
    outcome.status = base::Status::error(OFFPATH_ERR_NO_MEMORY, "no memory for what was sent");
  } else {
    try {
      outcome = home_.perform(from, question.body(), question.data(), head.is != 0);
    } catch (const std::exception&) {
      outcome = {base::Status::error(OFFPATH_ERR_NO_MEMORY, "no memory for a one-sided operation"), {}};
    }
  }
  const uint64_t bytes = outcome.fetched.size();
  letters.send(question.from, {.said = done, .status = outcome.status.code(), .id = head.id, .data_bytes = bytes},
               std::move(outcome.fetched));
}

void AtHome::lock(const Letter& question, Letters& letters) {
  const bool exclusive = question.head.said == Letter::Said::lock_exclusive;
  const base::Status asked = home_.lock(static_cast<uint32_t>(question.from), exclusive);
  if (asked.ok()) {
    locking_[question.from] = question.head.id;
  } else {
    letters.send(question.from, {.said = Letter::Said::granted, .status = asked.code(), .id = question.head.id});
  }
}

}  // namespace offpath::mpi
