// SPDX-License-Identifier: BSD-3-Clause
#include "files/transfer.hpp"

#include "base/limits.hpp"
#include "base/records.hpp"

#include <offpath/offpath.h>

#include <algorithm>

namespace offpath::files {

using base::Result;
using base::Status;
using memory::Layout;
using memory::Range;

namespace {

struct TransferRecord {
  memory::Block memory;
  uint64_t offset;
  uint64_t skip;
  uint32_t file;
  uint32_t layout;
  uint32_t layouts_count;
  uint32_t ranges_count;
  uint32_t after_count;
  uint32_t flags;
};
static_assert(sizeof(TransferRecord) == 72);

Status impossible(const char* what) {
  return Status::error(OFFPATH_ERR_ARGUMENT, "a transfer of a file: %s. Check its description", what);
}

bool ascends(const Layout& layout) {
  uint64_t end = 0;
  for (const Range& range : layout.ranges) {
    if (range.bytes == 0) continue;
    if (range.offset < 0 || static_cast<uint64_t>(range.offset) < end) return false;
    end = static_cast<uint64_t>(range.offset) + range.bytes;
  }
  return layout.extent_bytes > 0 && end <= static_cast<uint64_t>(layout.extent_bytes);
}

}  // namespace

bool ends_within(const Transfer& transfer, uint64_t file_bytes) {
  const unsigned __int128 data = static_cast<unsigned __int128>(transfer.skip) + transfer.memory.bytes;
  unsigned __int128 end = transfer.offset;
  if (transfer.layout == 0) {
    end += data;
  } else {
    const Layout& layout = transfer.layouts[transfer.layout - 1];
    const unsigned __int128 elements = (data + layout.size_bytes - 1) / layout.size_bytes;
    if (elements > INT64_MAX) return false;
    end += elements * static_cast<uint64_t>(layout.extent_bytes);
  }
  return end <= file_bytes;
}

Status check(const Transfer& transfer) {
  if (transfer.file >= kMaxFiles) return impossible("no file has that number");
  if (transfer.memory.peer != 0 || transfer.memory.tag != 0) return impossible("its block has a peer or a tag");
  if (transfer.memory.bytes >= base::kBlockLimitBytes) return impossible("too many bytes");
  if (transfer.layouts.size() > kMaxLayouts) return impossible("too many layouts");
  if (std::max(transfer.memory.layout, transfer.layout) > transfer.layouts.size())
    return impossible("a layout is missing");
  for (const Layout& layout : transfer.layouts) {
    if (const Status status = memory::check_layout(layout); !status.ok()) return status;
  }
  if (transfer.layout != 0 && !ascends(transfer.layouts[transfer.layout - 1]))
    return impossible("its layout in the file goes back, or elements overlap");
  return ends_within(transfer, INT64_MAX) ? Status() : impossible("it leaves what a file can hold");
}

uint64_t bytes_within(const Transfer& transfer, uint64_t file_bytes) {
  if (file_bytes <= transfer.offset) return 0;
  const uint64_t reach = file_bytes - transfer.offset;
  uint64_t data = reach;
  if (transfer.layout != 0) {
    const Layout& layout = transfer.layouts[transfer.layout - 1];
    const auto extent = static_cast<uint64_t>(layout.extent_bytes);
    data = reach / extent * layout.size_bytes;
    for (const Range& range : layout.ranges) {
      const auto begin = static_cast<uint64_t>(range.offset);
      if (reach % extent > begin) data += std::min(range.bytes, reach % extent - begin);
    }
  }
  return data <= transfer.skip ? 0 : std::min(data - transfer.skip, transfer.memory.bytes);
}

std::vector<uint8_t> encode(const Transfer& transfer, uint64_t* after_offset) {
  std::vector<uint8_t> out(sizeof(ResultRecord));
  base::RecordWriter writer(out);
  writer.write(TransferRecord{
      transfer.memory, transfer.offset, transfer.skip, transfer.file, transfer.layout,
      static_cast<uint32_t>(transfer.layouts.size()), static_cast<uint32_t>(memory::count_ranges(transfer.layouts)),
      static_cast<uint32_t>(transfer.after.size()), transfer.locked ? uint32_t{OFFPATH_FILE_LOCKED} : 0});
  memory::write_layouts(transfer.layouts, writer);
  if (after_offset != nullptr) *after_offset = out.size();
  writer.write_all(std::span(transfer.after));
  return out;
}

Result<Transfer> decode(std::span<const uint8_t> record) {
  base::RecordReader reader(record);
  ResultRecord result;
  TransferRecord head;
  Transfer out;
  if (!reader.read(result) || !reader.read(head) || (head.flags & ~uint32_t{OFFPATH_FILE_LOCKED}) != 0 ||
      head.layouts_count > kMaxLayouts || head.after_count > OFFPATH_TASK_AFTER_MAX ||
      !memory::read_layouts(reader, head.layouts_count, head.ranges_count, out.layouts) ||
      !reader.read_all(out.after, head.after_count)) {
    return impossible("its record is cut short or does not fit together");
  }
  out.file = head.file;
  out.locked = head.flags != 0;
  out.memory = head.memory;
  out.offset = head.offset;
  out.skip = head.skip;
  out.layout = head.layout;
  return out;
}

}  // namespace offpath::files
