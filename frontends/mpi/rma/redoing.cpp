// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/rma/redoing.hpp"

#include "memory/port.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace offpath::mpi {
namespace {

// Where a block of this process lies.
struct Place {
  std::shared_ptr<memory::Port> memory;
  uint64_t address;
};

std::optional<Place> place_of(const memory::Block& block, const std::vector<memory::Layout>& layouts) {
  std::shared_ptr<memory::Port> direct = memory::make_direct();
  if (block.layout == 0) return Place{std::move(direct), block.address};
  if (block.layout > layouts.size()) return std::nullopt;
  auto index = memory::index_layout(layouts[block.layout - 1]);
  return Place{memory::make_strided(std::move(direct), block.address, std::move(index)), 0};
}

}  // namespace

void Redoing::add(std::vector<client::Kept>& kept) {
  for (; !kept.empty(); kept.pop_back()) {
    const client::Kept& one = kept.back();
    base::Result<remote::Origin> origin = remote::decode_origin(one.record);
    if (!origin.ok()) {
      failed_.emplace(one.sequence, origin.status().code());
      continue;
    }
    operations_[one.sequence] = {std::move(origin.value()), one.may_be_done};
    waiting_.push_back(one.sequence);
  }
}

void Redoing::ask(Letters& letters) {
  if (!std::is_sorted(waiting_.begin(), waiting_.end())) std::sort(waiting_.begin(), waiting_.end());
  while (!waiting_.empty() && asked_bytes_ < kMostBytes && asked_count_ < kMostCount) {
    const uint64_t sequence = waiting_.front();
    const auto found = operations_.find(sequence);
    if (found != operations_.end()) ask(sequence, found->second, letters);
    waiting_.pop_front();
  }
}

void Redoing::ask(uint64_t sequence, Operation& operation, Letters& letters) {
  const remote::Origin& origin = operation.origin;
  const auto decoded = remote::decode(origin.body, remote::Data::may_follow);
  const auto refuse = [&](offpath_status_t status) { end(operations_.find(sequence), status); };
  if (!decoded.ok()) return refuse(decoded.status().code());
  if (lost_.contains(origin.target)) return refuse(OFFPATH_ERR_PEER_LOST);
  const remote::Wanted& wanted = decoded.value().wanted;
  const uint64_t data = remote::data_bytes(wanted), known = decoded.value().data.size();
  Letter::Head head{.said = Letter::Said::operation, .is = operation.may_be_done, .id = sequence};
  head.body_bytes = origin.body.size() - known;
  head.data_bytes = data;
  std::vector<uint8_t> bytes(origin.body);
  if (data > 0 && known == 0) {
    const auto place = place_of(origin.send, origin.layouts);
    if (!place || origin.send.bytes != data) return refuse(OFFPATH_ERR_INTERNAL);
    bytes.resize(bytes.size() + data);
    const memory::Outcome read = place->memory->read(&bytes[head.body_bytes], place->address, data);
    if (!read.ok()) return refuse(read.status().code());
  }
  operation.fetched_bytes = remote::fetches(wanted.kind) ? wanted.bytes : 0;
  operation.bytes = bytes.size() + operation.fetched_bytes;
  letters.send(static_cast<int>(origin.target), head, std::move(bytes));
  operation.asked = true;
  asked_bytes_ += operation.bytes;
  ++asked_count_;
}

void Redoing::take(const Letter& answer) {
  const auto found = operations_.find(answer.head.id);
  if (found == operations_.end()) return;
  const Operation& operation = found->second;
  if (!operation.asked || operation.origin.target != static_cast<uint32_t>(answer.from)) return;
  auto status = base::known_code(answer.head.status);
  if (status == OFFPATH_OK && operation.fetched_bytes > 0) {
    const auto place = place_of(operation.origin.result, operation.origin.layouts);
    if (place && answer.data().size() == operation.fetched_bytes) {
      const memory::Outcome written =
          place->memory->write(place->address, answer.data().data(), operation.fetched_bytes);
      status = written.status().code();
    } else {
      status = OFFPATH_ERR_INTERNAL;
    }
  }
  end(found, status);
}

void Redoing::end(Operations::iterator operation, offpath_status_t status) {
  if (status != OFFPATH_OK) failed_.emplace(operation->first, status);
  if (operation->second.asked) {
    asked_bytes_ -= operation->second.bytes;
    --asked_count_;
  }
  operations_.erase(operation);
}

void Redoing::forget(int target) {
  lost_.insert(static_cast<uint32_t>(target));
  for (auto next = operations_.begin(); next != operations_.end();) {
    const auto operation = next++;
    if (operation->second.origin.target == static_cast<uint32_t>(target)) end(operation, OFFPATH_ERR_PEER_LOST);
  }
}

offpath_status_t Redoing::outcome_of(uint64_t sequence) const {
  if (operations_.contains(sequence)) return OFFPATH_IN_PROGRESS;
  const auto found = failed_.find(sequence);
  return found == failed_.end() ? OFFPATH_OK : found->second;
}

offpath_status_t Redoing::take_failure(uint64_t through, bool may_ask) {
  const auto first = failed_.lower_bound(taken_), end = failed_.lower_bound(through);
  const offpath_status_t status = taken_ < through && first != end ? first->second : OFFPATH_OK;
  taken_ = std::max(taken_, through);
  if (!may_ask) failed_.erase(failed_.begin(), end);
  return status;
}

}  // namespace offpath::mpi
