// SPDX-License-Identifier: BSD-3-Clause
// All begin with u64 kMovingMark, u8 saying, u64 number. Then
//   ask   u32 executors, u32 running, u32 ready, u64 ready_ns, u64 running_ns, u64 trip_ns, u64 there_ns
//   task  u64 limit_ns, u64 cost_ns, i32 priority, u8 flags, u16 library, u16 symbol, u16 signature, u32 argument,
//         u16 ranges; ranges x (u64 bytes, u8 access); the texts; an argument that is not a block
#include "tasks/moving.hpp"

#include "base/fields.hpp"
#include "base/limits.hpp"

namespace offpath::tasks {

using base::FieldReader;
using base::FieldWriter;
using base::Result;
using base::Status;

namespace {

constexpr size_t kHeadBytes = 17, kLoadBytes = 44, kTaskBytes = 33, kRangeBytes = 9;

// What each consists of, for both directions.
constexpr auto kLoad = [](auto&& codec, auto& load) {
  codec(load.executors, load.running, load.ready, load.ready_ns, load.running_ns, load.trip_ns, load.there_ns);
};
struct Lengths {
  uint16_t library, symbol, signature;
  uint32_t argument;
  uint16_t ranges;
};
constexpr auto kTask = [](auto&& codec, auto& task, auto& flags, auto& of) {
  codec(task.limit_ns, task.cost_ns, task.priority, flags, of.library, of.symbol, of.signature, of.argument, of.ranges);
};
constexpr auto kGrant = [](auto&& codec, auto& grant) { codec(grant.count, grant.executors, grant.wait_ns); };
constexpr auto kOutcome = [](auto&& codec, auto& outcome) { codec(outcome.run_ns, outcome.wait_ns); };

Status nonsense() {
  return Status::error(OFFPATH_ERR_ARGUMENT, "a service says something about tasks that has no meaning");
}

std::vector<uint8_t> begin(Saying saying, uint64_t number, size_t more) {
  std::vector<uint8_t> out(kHeadBytes + more);
  FieldWriter(out.data())(kMovingMark, saying, number);
  return out;
}

bool take_text(std::span<const uint8_t>& from, size_t bytes, std::string& out) {
  if (bytes > from.size()) return false;
  out.assign(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(bytes));
  from = from.subspan(bytes);
  return out.find('\0') == std::string::npos;
}

}  // namespace

bool is_about_tasks(std::span<const uint8_t> body) {
  return body.size() >= kHeadBytes && base::ByteReader(body.data()).number<uint64_t>() == kMovingMark;
}

std::vector<uint8_t> encode_about(Saying saying, uint64_t number) { return begin(saying, number, 0); }

std::vector<uint8_t> encode_ask(const Load& load) {
  std::vector<uint8_t> out = begin(Saying::ask, 0, kLoadBytes);
  kLoad(FieldWriter(&out[kHeadBytes]), load);
  return out;
}

std::vector<uint8_t> encode_moved(uint64_t number, const Function& function, const Task& task, size_t most_bytes) {
  const bool is_inline = task.argument.size() <= kInlineArgument;
  const size_t texts = function.library.size() + function.symbol.size() + function.signature.size();
  const size_t more = kTaskBytes + task.ranges.size() * kRangeBytes + texts + (is_inline ? task.argument.size() : 0);
  if (task.ranges.size() > kMovedRanges || kHeadBytes + more > most_bytes) return {};
  std::vector<uint8_t> out = begin(Saying::task, number, more);
  const auto flags = static_cast<uint8_t>(flags_of(function));
  const Lengths lengths{static_cast<uint16_t>(function.library.size()), static_cast<uint16_t>(function.symbol.size()),
                        static_cast<uint16_t>(function.signature.size()), static_cast<uint32_t>(task.argument.size()),
                        static_cast<uint16_t>(task.ranges.size())};
  FieldWriter writer(&out[kHeadBytes]);
  kTask(writer, task, flags, lengths);
  for (const RangeRecord& range : task.ranges) writer(range.bytes, static_cast<uint8_t>(range.access));
  auto at = out.end() - static_cast<std::ptrdiff_t>(texts + (is_inline ? task.argument.size() : 0));
  for (const std::string* text : {&function.library, &function.symbol, &function.signature})
    at = std::copy(text->begin(), text->end(), at);
  if (is_inline) std::copy(task.argument.begin(), task.argument.end(), at);
  return out;
}

Result<Said> decode_said(std::span<const uint8_t> body) {
  if (!is_about_tasks(body)) return nonsense();
  Said out;
  FieldReader reader(body);
  reader(base::Gap<sizeof(kMovingMark)>(), out.saying, out.number);
  body = body.subspan(kHeadBytes);
  if (out.saying == Saying::collect || out.saying == Saying::drop) return body.empty() ? Result<Said>(out) : nonsense();
  if (out.saying == Saying::ask) {
    if (body.size() != kLoadBytes) return nonsense();
    kLoad(reader, out.load);
    return out;
  }
  if (out.saying != Saying::task || body.size() < kTaskBytes) return nonsense();
  Task& task = out.moved.task;
  uint8_t flags = 0;
  Lengths lengths{};
  kTask(reader, task, flags, lengths);
  body = body.subspan(kTaskBytes);
  if (!take_flags(flags, out.moved.function) || lengths.argument > OFFPATH_TASK_ARGUMENT_MAX_BYTES ||
      lengths.ranges > kMovedRanges || body.size() < lengths.ranges * kRangeBytes)
    return nonsense();
  for (uint32_t i = 0; i < lengths.ranges; ++i) {
    RangeRecord range{};
    uint8_t access = 0;
    reader(range.bytes, access);
    range.access = access;
    if (!is_access(access) || range.bytes >= base::kBlockLimitBytes) return nonsense();
    task.ranges.push_back(range);
  }
  body = body.subspan(lengths.ranges * kRangeBytes);
  Function& function = out.moved.function;
  if (!take_text(body, lengths.library, function.library) || !take_text(body, lengths.symbol, function.symbol) ||
      !take_text(body, lengths.signature, function.signature) || function.library.empty() || function.symbol.empty())
    return nonsense();
  if (lengths.argument > kInlineArgument) {
    out.moved.argument_bytes = lengths.argument;
    return body.empty() ? Result<Said>(std::move(out)) : nonsense();
  }
  if (body.size() != lengths.argument) return nonsense();
  task.argument.assign(body.begin(), body.end());
  return out;
}

std::vector<uint8_t> encode(const Grant& grant) {
  std::vector<uint8_t> out(kGrantBytes);
  kGrant(FieldWriter(out.data()), grant);
  return out;
}

Grant decode_grant(std::span<const uint8_t, kGrantBytes> from) {
  Grant out;
  kGrant(FieldReader(from), out);
  return out;
}

void encode(const Outcome& outcome, std::span<uint8_t, kOutcomeBytes> to) { kOutcome(FieldWriter(to.data()), outcome); }

Outcome decode_outcome(std::span<const uint8_t, kOutcomeBytes> from) {
  Outcome out;
  kOutcome(FieldReader(from), out);
  return out;
}

}  // namespace offpath::tasks
