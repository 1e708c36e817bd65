// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/record.hpp"

#include "base/limits.hpp"
#include "base/records.hpp"

namespace offpath::tasks {

using base::Result;
using base::Status;

namespace {

std::span<const char> characters(const std::string& text) { return {text.data(), text.size()}; }

bool read_text(base::RecordReader& reader, std::string& text, uint32_t bytes) {
  std::vector<char> read;
  if (bytes > kMaxNameBytes || !reader.read_all(read, bytes)) return false;
  text.assign(read.begin(), read.end());
  return text.find('\0') == std::string::npos;
}

}  // namespace

bool is_whole(const RangeRecord& range) {
  const bool stays = range.version == 0 || range.access == OFFPATH_TASK_IN;
  return is_access(range.access) && stays && range.address != 0 && range.bytes < base::kBlockLimitBytes &&
         range.address <= UINT64_MAX - range.bytes;
}

uint32_t flags_of(const Function& function) {
  return (function.is_signed ? kSigned : 0) | (function.is_target ? kTarget : 0);
}

bool take_flags(uint32_t flags, Function& function) {
  function.is_signed = (flags & kSigned) != 0;
  function.is_target = (flags & kTarget) != 0;
  return flags == flags_of(function);
}

std::vector<uint8_t> encode(const Function& function) {
  std::vector<uint8_t> out(sizeof(ResultRecord));
  base::RecordWriter writer(out);
  writer.write(FunctionRecord{static_cast<uint32_t>(function.library.size()),
                              static_cast<uint32_t>(function.symbol.size()),
                              static_cast<uint32_t>(function.signature.size()), flags_of(function)});
  for (const std::string* text : {&function.library, &function.symbol, &function.signature}) {
    writer.write_all(characters(*text));
  }
  return out;
}

std::vector<uint8_t> encode(const Task& task, uint64_t* after_offset) {
  std::vector<uint8_t> out;
  out.reserve(sizeof(ResultRecord) + sizeof(TaskRecord) + task.ranges.size() * sizeof(RangeRecord) +
              task.after.size() * sizeof(uint32_t) + task.argument.size());
  out.resize(sizeof(ResultRecord));
  base::RecordWriter writer(out);
  writer.write(TaskRecord{task.function, static_cast<uint32_t>(task.argument.size()),
                          static_cast<uint32_t>(task.ranges.size()), static_cast<uint32_t>(task.after.size()),
                          task.priority, task.flags, task.limit_ns, task.cost_ns, task.deadline_ns});
  writer.write_all(std::span(task.ranges));
  if (after_offset != nullptr) *after_offset = out.size();
  writer.write_all(std::span(task.after));
  writer.write_all(std::span(task.argument));
  return out;
}

Result<Function> decode_function(std::span<const uint8_t> from) {
  base::RecordReader reader(from);
  ResultRecord result;
  FunctionRecord head;
  Function out;
  if (!reader.read(result) || !reader.read(head) || !read_text(reader, out.library, head.library_bytes) ||
      !read_text(reader, out.symbol, head.symbol_bytes) || !read_text(reader, out.signature, head.signature_bytes) ||
      !take_flags(head.flags, out)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "the record of a function has impossible values");
  }
  return out;
}

Result<Task> decode_task(std::span<const uint8_t> from) {
  base::RecordReader reader(from);
  ResultRecord result;
  TaskRecord head;
  Task out;
  if (!reader.read(result) || !reader.read(head) || head.ranges_count > OFFPATH_TASK_RANGES_MAX ||
      head.after_count > OFFPATH_TASK_AFTER_MAX || head.argument_bytes > OFFPATH_TASK_ARGUMENT_MAX_BYTES ||
      !reader.read_all(out.ranges, head.ranges_count) || !reader.read_all(out.after, head.after_count) ||
      !reader.read_all(out.argument, head.argument_bytes)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "the record of a task has impossible values");
  }
  for (const RangeRecord& range : out.ranges) {
    if (!is_whole(range)) return Status::error(OFFPATH_ERR_ARGUMENT, "a range of a task has impossible values");
  }
  out.function = head.function;
  out.priority = head.priority;
  out.flags = head.flags;
  out.limit_ns = head.limit_ns;
  out.cost_ns = head.cost_ns;
  out.deadline_ns = head.deadline_ns;
  return out;
}

std::vector<uint8_t> encode_gate(uint32_t count, uint64_t* after_offset) {
  std::vector<uint8_t> bytes((1 + size_t{count}) * sizeof(uint32_t));
  memcpy(bytes.data(), &count, sizeof(count));
  *after_offset = sizeof(count);
  return bytes;
}

base::Result<std::vector<uint32_t>> decode_gate(std::span<const uint8_t> from) {
  uint32_t count = 0;
  if (from.size() >= sizeof(count)) memcpy(&count, from.data(), sizeof(count));
  if (count == 0 || count > OFFPATH_TASK_AFTER_MAX || from.size() < (1 + size_t{count}) * sizeof(count))
    return base::Status::error(OFFPATH_ERR_ARGUMENT, "a gate is cut short, or waits for nothing");
  std::vector<uint32_t> after(count);
  memcpy(after.data(), from.data() + sizeof(count), count * sizeof(count));
  return after;
}

}  // namespace offpath::tasks
