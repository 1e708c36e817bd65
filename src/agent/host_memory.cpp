// SPDX-License-Identifier: BSD-3-Clause
#include "agent/host_memory.hpp"

#include "base/records.hpp"

namespace offpath::agent {

using base::Result;
using base::Status;
using memory::Port;
using memory::Range;
using wire::LinkKind;
using wire::LinkMessage;

Result<std::shared_ptr<Port>> memory_on_this_machine(const session::SegmentView& view, pid_t process,
                                                     std::shared_ptr<memory::Aliases> aliases) {
  std::shared_ptr<Port> port =
      memory::make_mapped({view.shared_address(), view.shared_bytes(), view.shared_data(), view.mapping()},
                          memory::make_cma(process), std::move(aliases));
  const session::SegmentHeader& header = view.header();
  uint64_t value = 0;
  const Status status = port->read(&value, header.probe_address, sizeof(value)).status();
  if (!status.ok()) return status;
  if (value != header.probe_value) {
    return Status::error(OFFPATH_ERR_PERMISSION,
                         "the service reads another process than its client (different "
                         "process id namespaces). Run both in one");
  }
  return port;
}

namespace {

// The ranges that precede the data, together as long as the access. False: they are not.
bool read_ranges(const LinkMessage& message, fabric::Bytes& payload, std::vector<Range>& ranges) {
  base::RecordReader reader(payload);
  if (!reader.read_all(ranges, message.ranges)) return false;
  payload = payload.subspan(ranges.size() * sizeof(Range));
  uint64_t left = message.bytes;
  for (const Range& range : ranges) {
    if (range.bytes > left) return false;
    left -= range.bytes;
  }
  return ranges.empty() || left == 0;
}

void get(const std::shared_ptr<Port>& port, const LinkMessage& message, std::span<const Range> ranges, Link& link) {
  LinkMessage answer;
  answer.kind = LinkKind::got;
  answer.number = message.number;
  answer.bytes = message.bytes;
  const uint8_t* there = ranges.empty() ? port->view(message.address, message.bytes) : nullptr;
  if (there != nullptr) return link.send(answer, {there, message.bytes}, port);
  const auto buffer = std::make_shared_for_overwrite<uint8_t[]>(message.bytes);
  const memory::Outcome outcome =
      ranges.empty() ? port->read(buffer.get(), message.address, message.bytes) : port->gather(buffer.get(), ranges);
  if (!outcome.ok()) return end_access(message, outcome.status().code(), link);
  link.send(answer, {buffer.get(), message.bytes}, buffer);
}

}  // namespace

Place place_for_put(const std::shared_ptr<Port>& port, const LinkMessage& message, size_t payload_bytes) {
  const bool whole = message.kind == LinkKind::put && message.ranges == 0 && message.bytes == payload_bytes;
  return whole ? Place{port->view(message.address, message.bytes), port} : Place{};
}

void do_access(const std::shared_ptr<Port>& port, const LinkMessage& message, fabric::Bytes payload, Link& link) {
  std::vector<Range> ranges;
  const bool is_get = message.kind == LinkKind::get;
  const bool good =
      message.bytes > 0 && read_ranges(message, payload, ranges) && payload.size() == (is_get ? 0 : message.bytes);
  if (!good) return end_access(message, OFFPATH_ERR_ARGUMENT, link);
  if (is_get) return get(port, message, ranges, link);
  Status status;
  const bool is_there = ranges.empty() && payload.data() == port->view(message.address, message.bytes);
  if (!is_there) {
    status = (ranges.empty() ? port->write(message.address, payload.data(), payload.size())
                             : port->scatter(ranges, payload.data()))
                 .status();
  }
  end_access(message, status.code(), link);
}

void end_access(const LinkMessage& message, offpath_status_t status, Link& link) {
  LinkMessage answer;
  answer.kind = LinkKind::ended;
  answer.number = message.number;
  answer.status = status;
  link.send(answer);
}

}  // namespace offpath::agent
