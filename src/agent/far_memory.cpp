// SPDX-License-Identifier: BSD-3-Clause
#include "agent/far_memory.hpp"

#include "base/records.hpp"
#include "memory/join.hpp"

#include <algorithm>
#include <cstring>

namespace offpath::agent {

using base::Status;
using memory::Outcome;
using memory::Range;
using memory::Ticket;
using wire::LinkKind;
using wire::LinkMessage;

namespace {
constexpr uint64_t kAccessCostBytes = 256;  // of the limit, whatever its length
uint64_t cost(const LinkMessage& message) { return message.bytes + kAccessCostBytes; }
}  // namespace

class FarMemory::Port : public memory::RangedPort {
 public:
  Port(std::shared_ptr<FarMemory> memory, uint32_t client) : memory_(std::move(memory)), client_(client) {}

  Outcome gather(void* to, std::span<const Range> ranges, Ticket ticket) const override {
    return in_accesses(ranges, ticket, LinkKind::get, static_cast<uint8_t*>(to), nullptr);
  }
  Outcome scatter(std::span<const Range> ranges, const void* from, Ticket ticket) const override {
    return in_accesses(ranges, ticket, LinkKind::put, nullptr, static_cast<const uint8_t*>(from));
  }
  bool prompt() const override { return false; }

 private:
  Outcome begin(LinkKind kind, std::vector<Range> ranges, uint64_t bytes, uint8_t* to, const uint8_t* from,
                Ticket ticket) const {
    Access access;
    access.message.kind = kind;
    access.message.client = client_;
    access.message.bytes = bytes;
    access.to = to;
    access.from = from;
    access.ticket = ticket;
    if (ranges.size() == 1) {
      access.message.address = static_cast<uint64_t>(ranges.front().offset);
    } else {
      access.message.ranges = static_cast<uint32_t>(ranges.size());
      access.ranges = std::move(ranges);
    }
    return memory_->begin(std::move(access));
  }

  // As many accesses as it takes, none longer than one may be.
  Outcome in_accesses(std::span<const Range> ranges, Ticket ticket, LinkKind kind, uint8_t* to,
                      const uint8_t* from) const {
    std::optional<memory::Join> join;  // of several
    std::vector<Range> part;
    uint64_t part_bytes = 0, at = 0;
    const auto do_part = [&](Ticket next) {
      const Outcome outcome = begin(kind, std::exchange(part, {}), part_bytes, to == nullptr ? nullptr : to + at,
                                    from == nullptr ? nullptr : from + at, next);
      at += std::exchange(part_bytes, 0);
      return outcome;
    };
    for (Range range : ranges) {
      while (range.bytes > 0) {
        const uint64_t bytes = std::min<uint64_t>(range.bytes, wire::kMaxAccessBytes - part_bytes);
        part.push_back({range.offset, bytes});
        part_bytes += bytes;
        range.offset = static_cast<int64_t>(static_cast<uint64_t>(range.offset) + bytes);
        range.bytes -= bytes;
        const bool full = part_bytes == wire::kMaxAccessBytes || part.size() == wire::kMaxAccessRanges;
        if (!full) continue;
        if (!join) join.emplace(ticket);
        if (!join->add(do_part(join->next()))) return join->end();
      }
    }
    if (!join) return part.empty() ? Outcome() : do_part(ticket);
    if (!part.empty()) join->add(do_part(join->next()));
    return join->end();
  }

  const std::shared_ptr<FarMemory> memory_;
  const uint32_t client_;
};

std::shared_ptr<memory::Port> FarMemory::port_of(uint32_t client) {
  return std::make_shared<Port>(shared_from_this(), client);
}

Outcome FarMemory::begin(Access access) {
  bool first;
  {
    std::lock_guard lock(mutex_);
    if (lost_) return Status::error(OFFPATH_ERR_PEER_LOST, "the agent of the client's host is lost");
    first = waiting_.empty();
    waiting_.push_back(std::move(access));
  }
  if (first) wake_();
  return Outcome::later();
}

bool FarMemory::move(Link& link) {
  bool any = false;
  while (open_bytes_ < limit_) {
    Access next;
    {
      std::lock_guard lock(mutex_);
      if (waiting_.empty()) break;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    any = true;
    const uint64_t number = next_number_++;
    next.message.number = number;
    open_bytes_ += cost(next.message);
    Access& access = open_[number] = std::move(next);
    if (access.ranges.empty()) {
      access.leaves = access.from != nullptr;
      link.send(access.message,
                access.from == nullptr ? fabric::Bytes() : fabric::Bytes(access.from, access.message.bytes), nullptr,
                access.leaves);
      continue;
    }
    auto body = std::make_shared<std::vector<uint8_t>>();
    base::RecordWriter writer(*body);
    writer.write_all(std::span<const Range>(access.ranges));
    if (access.from != nullptr) body->insert(body->end(), access.from, access.from + access.message.bytes);
    link.send(access.message, *body, body);
  }
  return any;
}

Place FarMemory::place_for(const LinkMessage& message, size_t bytes) {
  const auto found = open_.find(message.number);
  const bool expected = message.kind == LinkKind::got && found != open_.end() && found->second.to != nullptr &&
                        found->second.message.bytes == bytes && !found->second.answered && !found->second.comes;
  if (!expected) return {};
  found->second.comes = true;
  return {found->second.to, nullptr};
}

void FarMemory::on_message(const LinkMessage& message, fabric::Bytes payload) {
  const auto found = open_.find(message.number);
  if (found == open_.end() || found->second.answered) return;
  Access& access = found->second;
  if (access.comes && payload.data() != access.to) return;
  if (message.kind == LinkKind::got && access.to != nullptr) {
    if (payload.size() != access.message.bytes) {
      access.status = Status::error(OFFPATH_ERR_MEMORY_FAULT, "an agent has sent another number of bytes");
    } else if (payload.data() != access.to) {
      memcpy(access.to, payload.data(), payload.size());
    }
  } else if (message.kind == LinkKind::ended && (access.from != nullptr || message.status != 0)) {
    if (message.status != 0) {
      access.status = Status::error(base::known_code(message.status),
                                    "the agent cannot access %llu bytes at %#llx of its client %u",
                                    static_cast<unsigned long long>(access.message.bytes),
                                    static_cast<unsigned long long>(access.message.address), access.message.client);
    }
  } else {
    return;
  }
  access.answered = true;
  end_if_over(message.number);
}

void FarMemory::on_sent(uint64_t number) {
  const auto found = open_.find(number);
  if (found == open_.end()) return;
  found->second.leaves = false;
  end_if_over(number);
}

void FarMemory::end_if_over(uint64_t number) {
  const auto found = open_.find(number);
  if (!found->second.answered || found->second.leaves) return;
  const Access access = std::move(found->second);
  open_.erase(found);
  open_bytes_ -= cost(access.message);
  access.ticket.sink->put(access.ticket.number, access.status);
}

void FarMemory::lose() {
  const Status status = Status::error(OFFPATH_ERR_PEER_LOST, "the agent of the client's host is lost");
  std::deque<Access> waiting;
  {
    std::lock_guard lock(mutex_);
    lost_ = true;
    waiting.swap(waiting_);
  }
  for (const Access& access : waiting) access.ticket.sink->put(access.ticket.number, status);
  std::vector<uint64_t> open;
  for (auto& [number, access] : open_) {
    if (!access.answered) access.status = status;
    access.answered = true;
    open.push_back(number);
  }
  for (const uint64_t number : open) end_if_over(number);
}

bool FarMemory::waits() {
  std::lock_guard lock(mutex_);
  return !waiting_.empty() && open_bytes_ < limit_;
}

bool FarMemory::idle() {
  std::lock_guard lock(mutex_);
  return open_.empty() && waiting_.empty();
}

}  // namespace offpath::agent
