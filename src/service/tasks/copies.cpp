// SPDX-License-Identifier: BSD-3-Clause
#include "service/tasks/copies.hpp"

#include <algorithm>

namespace offpath::service {

using base::Status;
using memory::Outcome;

uint64_t Copies::begin(std::shared_ptr<memory::Port> memory, Way way, std::vector<Part> parts, OnOver on_over) {
  const uint64_t number = next_++;
  Copy& copy = copies_[number];
  copy.memory = std::move(memory);
  copy.way = way;
  copy.parts = std::move(parts);
  copy.on_over = std::move(on_over);
  return number;
}

void Copies::fail(Copy& copy, const Status& status, uint32_t range) {
  if (!copy.status.ok()) return;
  copy.status = status;
  copy.range = range;
}

bool Copies::reap() {
  if (accesses_.empty()) return false;
  const auto ended = ended_.take();
  for (const auto& [ticket, status] : ended) {
    const Access access = accesses_.extract(ticket).mapped();
    Copy& copy = copies_.at(access.copy);  // not over before
    --copy.under_way;
    copy.under_way_bytes -= access.bytes;
    if (!status.ok()) fail(copy, status, access.range);
  }
  return !ended.empty();
}

bool Copies::advance(uint64_t number, Copy& copy, uint64_t& budget) {
  const bool prompt = copy.memory->prompt();
  bool any = false;
  while (!copy.all_begun()) {
    const Part& part = copy.parts[copy.part];
    const uint64_t left = part.bytes - copy.begun;
    if (left == 0) {
      ++copy.part;
      copy.begun = 0;
      continue;
    }
    if (prompt ? budget == 0 : copy.under_way_bytes >= kUnderWayBytes) break;
    any = true;
    const uint64_t bytes = std::min(left, prompt ? budget : kPieceBytes), address = part.address + copy.begun;
    const uint64_t ticket_number = next_++;
    const memory::Ticket ticket{&ended_, ticket_number};
    uint8_t* here = part.here + copy.begun;
    const Outcome outcome = copy.way == Way::in ? copy.memory->read(here, address, bytes, ticket)
                                                : copy.memory->write(address, here, bytes, ticket);
    copy.begun += bytes;
    if (outcome.is_later()) {
      accesses_[ticket_number] = {number, bytes, part.range};
      ++copy.under_way;
      copy.under_way_bytes += bytes;
      continue;
    }
    if (!outcome.ok()) fail(copy, outcome.status(), part.range);
    if (prompt) budget -= bytes;
  }
  return any;
}

bool Copies::progress() {
  if (copies_.empty()) return false;
  bool any = reap();
  uint64_t budget = kRoundBytes;
  std::vector<uint64_t> over;
  for (auto& [number, copy] : copies_) {
    any |= advance(number, copy, budget);
    if (copy.over()) over.push_back(number);
  }
  for (const uint64_t number : over) {
    const Copy copy = std::move(copies_.extract(number).mapped());
    copy.on_over(copy.status, copy.range);
  }
  return any || !over.empty();
}

bool Copies::pending() {
  if (copies_.empty()) return false;
  if (ended_.any()) return true;
  return std::any_of(copies_.begin(), copies_.end(), [](const auto& entry) { return entry.second.under_way == 0; });
}

}  // namespace offpath::service
