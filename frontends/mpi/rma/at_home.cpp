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
  if (!asked_.empty() && asked_.front().from == member) answer_.reset();
  std::erase_if(asked_, [member](const Letter& question) { return question.from == member; });
}

void AtHome::serve(Letters& letters) {
  if (!serves_) return;
  for (; !asked_.empty(); asked_.pop_front()) {
    const Letter& question = asked_.front();
    if (!answer_) answer_ = answer_to(question);
    if (answer_) letters.send(question.from, answer_->head, std::move(answer_->bytes));
    answer_.reset();
  }
  for (const uint32_t member : home_.grant()) {
    const auto found = locking_.find(static_cast<int>(member));
    if (found != locking_.end()) found->second.is_granted = true;
  }
  std::erase_if(locking_, [&](const auto& entry) {
    const auto& [member, locking] = entry;
    if (locking.is_granted) letters.send(member, {.said = Letter::Said::granted, .id = locking.question});
    return locking.is_granted;
  });
}

std::optional<AtHome::Answer> AtHome::answer_to(const Letter& question) {
  using enum Letter::Said;
  const Letter::Head& head = question.head;
  if (head.said == lock_shared || head.said == lock_exclusive) return lock(question);
  if (head.said == operation) return carry_out(question);
  const base::Status given = home_.unlock(static_cast<uint32_t>(question.from));
  return Answer{{.said = granted, .status = given.code(), .id = head.id}, {}};
}

AtHome::Answer AtHome::carry_out(const Letter& question) {
  const Letter::Head& head = question.head;
  ops::onesided::Home::Outcome outcome;
  if (head.status != OFFPATH_OK) {
    outcome.status = base::Status::error(OFFPATH_ERR_NO_MEMORY, "no memory for what was sent");
  } else {
    try {
      outcome = home_.perform(static_cast<uint32_t>(question.from), question.body(), question.data(), head.is != 0);
    } catch (const std::exception&) {
      outcome = {base::Status::error(OFFPATH_ERR_NO_MEMORY, "no memory for a one-sided operation"), {}};
    }
  }
  const uint64_t bytes = outcome.fetched.size();
  return {{.said = Letter::Said::done, .status = outcome.status.code(), .id = head.id, .data_bytes = bytes},
          std::move(outcome.fetched)};
}

std::optional<AtHome::Answer> AtHome::lock(const Letter& question) {
  const bool exclusive = question.head.said == Letter::Said::lock_exclusive;
  const auto [entry, is_new] = locking_.try_emplace(question.from);
  const base::Status asked = home_.lock(static_cast<uint32_t>(question.from), exclusive);
  if (asked.ok()) {
    entry->second.question = question.head.id;
    return std::nullopt;
  }
  if (is_new) locking_.erase(entry);
  return Answer{{.said = Letter::Said::granted, .status = asked.code(), .id = question.head.id}, {}};
}

}  // namespace offpath::mpi
