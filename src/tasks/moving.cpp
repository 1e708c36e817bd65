// SPDX-License-Identifier: BSD-3-Clause
// All begin with u64 kMovingMark, u8 saying, u64 number. Then
//   ask   u32 executors, u32 running, u32 ready, u64 ready_ns, u64 running_ns, u64 trip_ns, u64 there_ns
//   task  u64 limit_ns, u64 cost_ns, i32 priority, u8 flags, u16 library, u16 symbol, u16 signature, u32 argument,
//         u16 ranges; ranges x (u64 bytes, u8 access); the texts; an argument that is not a block
#include "tasks/moving.hpp"

#include "base/bytes.hpp"
#include "base/limits.hpp"

namespace offpath::tasks {

using base::ByteReader;
using base::ByteWriter;
using base::Result;
using base::Status;

namespace {

constexpr size_t kHeadBytes = 17, kLoadBytes = 44, kTaskBytes = 33, kRangeBytes = 9;

Status nonsense() {
  return Status::error(OFFPATH_ERR_ARGUMENT, "a service says something about tasks that has no meaning");
}

std::vector<uint8_t> begin(Saying saying, uint64_t number, size_t more) {
  std::vector<uint8_t> out(kHeadBytes + more);
  ByteWriter writer(out.data());
  writer.number(kMovingMark);
  writer.number(static_cast<uint8_t>(saying));
  writer.number(number);
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
  return body.size() >= kHeadBytes && ByteReader(body.data()).number<uint64_t>() == kMovingMark;
}

std::vector<uint8_t> encode_about(Saying saying, uint64_t number) { return begin(saying, number, 0); }

std::vector<uint8_t> encode_ask(const Load& load) {
  std::vector<uint8_t> out = begin(Saying::ask, 0, kLoadBytes);
  ByteWriter writer(&out[kHeadBytes]);
  writer.number(load.executors);
  writer.number(load.running);
  writer.number(load.ready);
  writer.number(load.ready_ns);
  writer.number(load.running_ns);
  writer.number(load.trip_ns);
  writer.number(load.there_ns);
  return out;
}

std::vector<uint8_t> encode_moved(uint64_t number, const Function& function, const Task& task, size_t most_bytes) {
  const bool is_inline = task.argument.size() <= kInlineArgument;
  const size_t texts = function.library.size() + function.symbol.size() + function.signature.size();
  const size_t more = kTaskBytes + task.ranges.size() * kRangeBytes + texts + (is_inline ? task.argument.size() : 0);
  if (task.ranges.size() > kMovedRanges || kHeadBytes + more > most_bytes) return {};
  std::vector<uint8_t> out = begin(Saying::task, number, more);
  ByteWriter writer(&out[kHeadBytes]);
  writer.number(task.limit_ns);
  writer.number(task.cost_ns);
  writer.number(task.priority);
  writer.number(static_cast<uint8_t>(flags_of(function)));
  writer.number(static_cast<uint16_t>(function.library.size()));
  writer.number(static_cast<uint16_t>(function.symbol.size()));
  writer.number(static_cast<uint16_t>(function.signature.size()));
  writer.number(static_cast<uint32_t>(task.argument.size()));
  writer.number(static_cast<uint16_t>(task.ranges.size()));
  for (const RangeRecord& range : task.ranges) {
    writer.number(range.bytes);
    writer.number(static_cast<uint8_t>(range.access));
  }
  auto at = out.end() - static_cast<std::ptrdiff_t>(texts + (is_inline ? task.argument.size() : 0));
  for (const std::string* text : {&function.library, &function.symbol, &function.signature})
    at = std::copy(text->begin(), text->end(), at);
  if (is_inline) std::copy(task.argument.begin(), task.argument.end(), at);
  return out;
}

Result<Said> decode_said(std::span<const uint8_t> body) {
  if (!is_about_tasks(body)) return nonsense();
  ByteReader head(body.data() + sizeof(kMovingMark));
  Said out;
  const auto saying = head.number<uint8_t>();
  out.saying = static_cast<Saying>(saying);
  out.number = head.number<uint64_t>();
  body = body.subspan(kHeadBytes);
  ByteReader reader(body.data());
  if (out.saying == Saying::collect || out.saying == Saying::drop) return body.empty() ? Result<Said>(out) : nonsense();
  if (out.saying == Saying::ask) {
    if (body.size() != kLoadBytes) return nonsense();
    out.load.executors = reader.number<uint32_t>();
    out.load.running = reader.number<uint32_t>();
    out.load.ready = reader.number<uint32_t>();
    out.load.ready_ns = reader.number<uint64_t>();
    out.load.running_ns = reader.number<uint64_t>();
    out.load.trip_ns = reader.number<uint64_t>();
    out.load.there_ns = reader.number<uint64_t>();
    return out;
  }
  if (out.saying != Saying::task || body.size() < kTaskBytes) return nonsense();
  Task& task = out.moved.task;
  task.limit_ns = reader.number<uint64_t>();
  task.cost_ns = reader.number<uint64_t>();
  task.priority = reader.number<int32_t>();
  const auto flags = reader.number<uint8_t>();
  const auto library = reader.number<uint16_t>(), symbol = reader.number<uint16_t>(),
             signature = reader.number<uint16_t>();
  const auto argument = reader.number<uint32_t>();
  const auto ranges = reader.number<uint16_t>();
  body = body.subspan(kTaskBytes);
  if (!take_flags(flags, out.moved.function) || argument > OFFPATH_TASK_ARGUMENT_MAX_BYTES || ranges > kMovedRanges ||
      body.size() < ranges * kRangeBytes)
    return nonsense();
  for (uint32_t i = 0; i < ranges; ++i) {
    RangeRecord range{0, reader.number<uint64_t>(), reader.number<uint8_t>(), 0};
    const bool known =
        (range.access >= OFFPATH_TASK_IN && range.access <= OFFPATH_TASK_INOUT) || range.access == OFFPATH_TASK_REPORT;
    if (!known || range.bytes >= base::kBlockLimitBytes) return nonsense();
    task.ranges.push_back(range);
  }
  body = body.subspan(ranges * kRangeBytes);
  Function& function = out.moved.function;
  if (!take_text(body, library, function.library) || !take_text(body, symbol, function.symbol) ||
      !take_text(body, signature, function.signature) || function.library.empty() || function.symbol.empty())
    return nonsense();
  if (argument > kInlineArgument) {
    out.moved.argument_bytes = argument;
    return body.empty() ? Result<Said>(std::move(out)) : nonsense();
  }
  if (body.size() != argument) return nonsense();
  task.argument.assign(body.begin(), body.end());
  return out;
}

std::vector<uint8_t> encode(const Grant& grant) {
  std::vector<uint8_t> out(kGrantBytes);
  ByteWriter writer(out.data());
  writer.number(grant.count);
  writer.number(grant.executors);
  writer.number(grant.wait_ns);
  return out;
}

Grant decode_grant(std::span<const uint8_t, kGrantBytes> from) {
  ByteReader reader(from.data());
  Grant out;
  out.count = reader.number<uint32_t>();
  out.executors = reader.number<uint32_t>();
  out.wait_ns = reader.number<uint64_t>();
  return out;
}

void encode(const Outcome& outcome, std::span<uint8_t, kOutcomeBytes> to) {
  ByteWriter writer(to.data());
  writer.number(outcome.run_ns);
  writer.number(outcome.wait_ns);
}

Outcome decode_outcome(std::span<const uint8_t, kOutcomeBytes> from) {
  ByteReader reader(from.data());
  Outcome out;
  out.run_ns = reader.number<uint64_t>();
  out.wait_ns = reader.number<uint64_t>();
  return out;
}

}  // namespace offpath::tasks
