// SPDX-License-Identifier: BSD-3-Clause
#include "service/served_files.hpp"

#include "base/random.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace offpath::service {

using base::Fd;
using base::Result;
using base::Status;
using session::Slot;
using tasks::Order;

namespace {

Status check_file(const Fd& descriptor) {
  struct stat about {};
  const int flags = fcntl(descriptor.get(), F_GETFL);
  if (flags < 0 || fstat(descriptor.get(), &about) != 0 || !S_ISREG(about.st_mode) ||
      (flags & (O_APPEND | O_DIRECT | O_PATH)) != 0) {
    return Status::error(
        OFFPATH_ERR_ARGUMENT,
        "the descriptor is of no plain file, or was opened to append or past the page cache (bytes would not go "
        "where they belong). Open it without");
  }
  return {};
}

}  // namespace

void ServedFiles::take(uint32_t number, Fd descriptor) {
  if (number >= files::kMaxFiles) return;
  const auto awaited = awaited_.extract(number);
  if (awaited.empty()) {
    passed_.insert_or_assign(number, std::move(descriptor));
    return;
  }
  view_.finish(awaited.mapped(), adopt(number, std::move(descriptor)).code(), session::Counted::no);
}

Status ServedFiles::open(uint32_t index, const Slot& slot) {
  const uint64_t number = slot.address;  // the client may change it
  if (number >= files::kMaxFiles || awaited_.contains(static_cast<uint32_t>(number)))
    return Status::error(OFFPATH_ERR_ARGUMENT, "no file can have that number, or one is awaited already");
  auto passed = passed_.extract(static_cast<uint32_t>(number));
  if (passed.empty()) {
    awaited_[static_cast<uint32_t>(number)] = index;
    return {};
  }
  const Status status = adopt(static_cast<uint32_t>(number), std::move(passed.mapped()));
  if (status.ok()) view_.finish(index, OFFPATH_OK, session::Counted::no);
  return status;
}

Status ServedFiles::adopt(uint32_t number, Fd descriptor) {
  if (!descriptor.valid()) {
    return Status::error(
        OFFPATH_ERR_NO_MEMORY,
        "the service has no file descriptor left for another file. Raise 'ulimit -n' (the hard limit, too)");
  }
  if (const Status status = check_file(descriptor); !status.ok()) return status;
  files_[number] = std::make_shared<const memory::OpenFile>(std::move(descriptor));
  return {};
}

Status ServedFiles::ask(uint32_t index, const Slot& slot, ops::FileWay way) {
  if (order_.is_under_way(index)) return Status::error(OFFPATH_ERR_ARGUMENT, "the slot of a transfer is used twice");
  auto transfer = files::decode(view_.record(slot));
  Status status = transfer.ok() ? files::check(transfer.value()) : transfer.status();
  const auto file = status.ok() ? files_.find(transfer->file) : files_.end();
  if (status.ok() && file == files_.end())
    status = Status::error(OFFPATH_ERR_ARGUMENT, "a transfer of a file that is not open");
  if (!status.ok()) {
    order_.begin_other(index);
    return status;
  }
  Asked asked{way, file->second, std::move(transfer.value())};
  switch (order_.begin(index, asked.transfer.after, {}).verdict) {
    case Order::Verdict::ready:
      return begin(index, std::move(asked));
    case Order::Verdict::waits:
      waiting_[index] = std::move(asked);
      return {};
    case Order::Verdict::fails:
      return Status::error(OFFPATH_ERR_DEPENDENCE, "an operation that the transfer comes after has failed");
    case Order::Verdict::overlaps:
    case Order::Verdict::nonsense:
      break;
  }
  return Status::error(OFFPATH_ERR_ARGUMENT, "a transfer comes after an operation that is none");
}

void ServedFiles::decide(const Order::Decided& decided) {
  auto waiting = waiting_.extract(decided.slot);
  if (waiting.empty()) return;
  const Status status = decided.may_begin ? begin(decided.slot, std::move(waiting.mapped()))
                                          : Status::error(OFFPATH_ERR_DEPENDENCE,
                                                          "an operation that the transfer comes after has failed");
  if (!status.ok()) finish_(decided.slot, status.code());
}

// Transfers are operations of a team that nobody else is in.
Result<engine::TeamHandle> ServedFiles::own_team() {
  if (own_team_ != 0) return own_team_;
  engine::TeamSpec spec;
  base::fill_random(spec.id.bytes.data(), spec.id.bytes.size());
  spec.members = {{true, worker_, {}}};
  spec.client = client_;
  auto team = engine_.add_team(std::move(spec));
  if (team.ok()) own_team_ = team.value();
  return team;
}

Status ServedFiles::begin(uint32_t index, Asked asked) {
  const auto team = own_team();
  if (!team.ok()) return team.status();
  Begun begun{asked.transfer.memory.bytes, std::make_shared<memory::FileError>(0)};
  if (asked.way == ops::FileWay::read) {
    struct stat about {};
    if (fstat(asked.file->get(), &about) != 0)
      return Status::system_error(OFFPATH_ERR_FILE, errno, "the length of a file is not known");
    begun.bytes = files::bytes_within(asked.transfer, static_cast<uint64_t>(about.st_size));
  }
  const bool locked = asked.transfer.locked;
  graph::Graph graph = ops::expand(std::move(asked.transfer), asked.way, begun.bytes,
                                   memory::make_file(std::move(asked.file), &threads_, begun.error, locked));
  begun_[index] = std::move(begun);
  Slot& slot = view_.slot(index);
  session::SegmentView::note_start(slot);
  engine_.post(team.value(), next_++, std::move(graph), kContext | index);
  return {};
}

void ServedFiles::end(uint32_t index, const Status& status) {
  const auto ended = begun_.extract(index);
  if (ended.empty()) return;
  const Begun& transfer = ended.mapped();
  const files::ResultRecord result{status.ok() ? transfer.bytes : 0, transfer.error->load(), 0};
  if (uint8_t* const place = view_.bytes_at(view_.slot(index).record, sizeof(result)))
    memcpy(place, &result, sizeof(result));
  view_.header().file_bytes.fetch_add(result.bytes, std::memory_order_relaxed);
  finish_(index, status.code());
}

}  // namespace offpath::service
