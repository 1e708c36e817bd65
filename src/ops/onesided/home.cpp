// SPDX-License-Identifier: BSD-3-Clause
#include "ops/onesided/home.hpp"

#include "ops/onesided/perform.hpp"

#include <algorithm>
#include <utility>

namespace offpath::ops::onesided {

using base::Status;

namespace {

// Those of an element's layout that are left behind the first so many bytes.
std::shared_ptr<memory::Port> as_stretch(const Wanted& wanted, const std::shared_ptr<memory::Port>& memory,
                                         uint64_t& address) {
  if (wanted.contiguous) return memory;
  auto stretch = memory::make_strided(memory, address, memory::index_layout(wanted.layout));
  address = 0;
  return stretch;
}

// A journal that somebody has written over leads nowhere else.
class InWindow : public memory::Port {
 public:
  InWindow(const Regions& regions, const memory::Port& memory) : regions_(regions), memory_(memory) {}
  memory::Outcome read(void* to, uint64_t address, size_t bytes, memory::Ticket ticket) const override {
    return memory_.read(to, address, bytes, ticket);
  }
  memory::Outcome write(uint64_t address, const void* from, size_t bytes, memory::Ticket ticket) const override {
    Wanted wanted;
    wanted.offset = address;
    wanted.bytes = bytes;
    uint64_t at = 0;
    if (regions_.find(wanted, 0, at).empty())
      return Status::error(OFFPATH_ERR_RANGE, "a journal names memory outside its window");
    return memory_.write(address, from, bytes, ticket);
  }

 private:
  const Regions& regions_;
  const memory::Port& memory_;
};

Status unknown() {
  return Status::error(OFFPATH_ERR_SERVICE_LOST,
                       "nobody knows whether an atomic operation was done before its "
                       "service was lost");
}

}  // namespace

Home::Home(uint32_t members, bool dynamic, uint64_t base, std::shared_ptr<memory::Port> memory)
    : base_(dynamic ? 0 : base), memory_(std::move(memory)), has_told_(members) {}

void Home::take_over(std::span<uint8_t> journal) {
  const InWindow window(regions_, *memory_);
  history_ = remote::History::read(journal, static_cast<uint32_t>(has_told_.size()), window);
}

Home::Outcome Home::perform(uint32_t from, std::span<const uint8_t> body, std::span<const uint8_t> data,
                            bool may_be_done) {
  auto decoded = remote::decode(body, remote::Data::may_follow);
  if (!decoded.ok()) return {decoded.status(), {}};
  Wanted& wanted = decoded->wanted;
  if (from >= has_told_.size() || locks(wanted.kind) || data.size() != data_bytes(wanted)) {
    return {Status::error(OFFPATH_ERR_ARGUMENT, "a one-sided operation that cannot be"), {}};
  }
  uint64_t address = 0;
  if (wanted.bytes == 0) return {};
  if (regions_.find(wanted, base_, address).empty()) {
    return {
        Status::error(OFFPATH_ERR_RANGE, "%llu bytes at offset %llu do not lie in the target's window",
                      static_cast<unsigned long long>(wanted.bytes), static_cast<unsigned long long>(wanted.offset)),
        {}};
  }
  // What changes nothing, or would change it to the same, is done again.
  const bool counts = may_be_done && accumulates(wanted.kind) && sends(wanted);
  if (counts && !history_) return {unknown(), {}};
  const bool done = counts && wanted.number < history_->done_count(from);
  const uint64_t begun = counts && !done ? history_->done_bytes(from, wanted.number) : 0;
  if (!done && begun == 0) {
    Perform update(std::move(wanted), data, memory_, address);
    graph::Answer answer = graph::carry_out(update);
    return {std::move(answer.status), std::move(answer.payload)};
  }
  Outcome outcome;
  if (fetches(wanted.kind)) {
    auto fetched = history_->fetched(from, wanted.number);
    if (!fetched) return {unknown(), {}};
    outcome.fetched = std::move(*fetched);
  }
  if (!done && begun < wanted.bytes) {
    Wanted rest = wanted;
    rest.contiguous = true;
    rest.bytes -= begun;
    if (fetches(rest.kind)) rest.kind = OFFPATH_ACCUMULATE;
    const auto stretch = as_stretch(wanted, memory_, address);
    Perform update(std::move(rest), data.subspan(begun), stretch, address + begun);
    outcome.status = graph::carry_out(update).status;
  }
  return outcome;
}

// Holders come before all that ask: a service has granted to them, so none excludes another.
void Home::note_held(uint32_t from, Held held) {
  if (from >= has_told_.size() || has_told_[from]) return;
  has_told_[from] = true;
  ++told_count_;
  if (held != Held::nothing) locks_.hold(from, held == Held::exclusive);
}

Status Home::lock(uint32_t from, bool exclusive) {
  const auto is = [&](const Asked& asked) { return asked.from == from; };
  const bool may = from < has_told_.size() && has_told_[from] && !locks_.holds(from) &&
                   std::none_of(asked_.begin(), asked_.end(), is);
  if (!may) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "member %u locks what it holds, or has not said what it holds", from);
  }
  asked_.push_back({from, exclusive});
  return {};
}

Status Home::unlock(uint32_t from) {
  if (locks_.unlock(from)) return {};
  return Status::error(OFFPATH_ERR_ARGUMENT, "member %u unlocks what it has not locked", from);
}

void Home::forget(uint32_t from) {
  note_held(from, Held::nothing);
  locks_.forget(from);
  std::erase_if(asked_, [&](const Asked& asked) { return asked.from == from; });
}

std::vector<uint32_t> Home::grant() {
  std::vector<uint32_t> granted;
  if (told_count_ < has_told_.size()) return granted;
  for (const Asked& asked : std::exchange(asked_, {})) {
    if (locks_.lock(asked.from, asked.exclusive, asked.from) == Locks::Outcome::granted) granted.push_back(asked.from);
  }
  for (const graph::RequestId request : locks_.grant()) granted.push_back(static_cast<uint32_t>(request));
  return granted;
}

}  // namespace offpath::ops::onesided
