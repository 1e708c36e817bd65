// SPDX-License-Identifier: BSD-3-Clause
#include "memory/file.hpp"

#include "base/quiet_thread.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <system_error>

namespace offpath::memory {

using base::Status;

FileThreads::~FileThreads() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool FileThreads::run(std::function<void()> work) {
  std::lock_guard lock(mutex_);
  if (idle_ <= waiting_.size() && threads_.size() < most_) {
    try {
      threads_.push_back(base::quiet_thread([this] { loop(); }));
      ++idle_;
    } catch (const std::system_error&) {
      if (threads_.empty()) return false;  // else those that are there see to it
    }
  }
  waiting_.push_back(std::move(work));
  more_.notify_one();
  return true;
}

void FileThreads::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    more_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    --idle_;
    lock.unlock();
    work();
    lock.lock();
    ++idle_;
  }
}

namespace {

// As errno has it; a file that ends too soon is none of its numbers.
constexpr int kTooShort = -1;

// The whole range. 0, errno or kTooShort.
template <typename Move>
int move_all(uint64_t bytes, Move move) {
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t moved = move(done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return errno;
    if (moved == 0) return kTooShort;
    done += static_cast<uint64_t>(moved);
  }
  return 0;
}

// Of the stretch from the first byte of the ranges to the last, while it lives; others that lock wait for it. Who holds one for longer
// than a library needs is a program that keeps others off for good: its own transfers are not meant by that, and are not to wait again.
class Lock {
 public:
  Lock(const OpenFile& file, const std::vector<Range>& ranges) : file_(file.get()) {
    int64_t begin = INT64_MAX, end = 0;
    for (const Range& range : ranges) {
      begin = std::min(begin, range.offset);
      end = std::max(end, range.offset + static_cast<int64_t>(range.bytes));
    }
    if (end <= begin) return;
    about_.l_whence = SEEK_SET;
    about_.l_start = begin;
    about_.l_len = end - begin;
    about_.l_type = F_WRLCK;
    const int patience = file.waits_for_locks ? kPatienceMs : 0;
    for (int waited = 0; !held_ && waited <= patience; ++waited) {
      if (waited > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      held_ = fcntl(file_, F_OFD_SETLK, &about_) == 0;
      if (!held_ && errno != EAGAIN && errno != EACCES && errno != EINTR) return;
    }
    file.waits_for_locks = held_;
  }
  ~Lock() {
    about_.l_type = F_UNLCK;
    if (held_) fcntl(file_, F_OFD_SETLK, &about_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  static constexpr int kPatienceMs = 1000;
  const int file_;
  struct flock about_ {};
  bool held_ = false;
};

class FilePort : public RangedPort {
 public:
  FilePort(std::shared_ptr<const OpenFile> file, FileThreads* threads, std::shared_ptr<FileError> error, bool locks)
      : file_(std::move(file)), threads_(threads), error_(std::move(error)), locks_(locks) {}

  Outcome gather(void* to, std::span<const Range> ranges, Ticket ticket) const override {
    return later(ranges, ticket, false, [to](int file, uint64_t at, uint64_t bytes, uint64_t offset) {
      return pread(file, static_cast<uint8_t*>(to) + at, bytes, static_cast<off_t>(offset));
    });
  }
  Outcome scatter(std::span<const Range> ranges, const void* from, Ticket ticket) const override {
    return later(ranges, ticket, locks_, [from](int file, uint64_t at, uint64_t bytes, uint64_t offset) {
      return pwrite(file, static_cast<const uint8_t*>(from) + at, bytes, static_cast<off_t>(offset));
    });
  }
  bool prompt() const override { return threads_ == nullptr; }

 private:
  template <typename Move>
  Outcome later(std::span<const Range> ranges, Ticket ticket, bool locked, Move move) const {
    const auto is_possible = [](const Range& range) {
      return range.offset >= 0 && range.bytes <= static_cast<uint64_t>(INT64_MAX - range.offset);
    };
    if (!std::all_of(ranges.begin(), ranges.end(), is_possible)) return failure(*error_, EFBIG);
    // The port may go before the access ends.
    auto work = [file = file_, error = error_, ranges = std::vector(ranges.begin(), ranges.end()), locked,
                 move]() -> Status {
      const std::optional<Lock> lock = locked ? std::optional<Lock>(std::in_place, *file, ranges) : std::nullopt;
      uint64_t at = 0;
      for (const Range& range : ranges) {
        const int number = move_all(range.bytes, [&](uint64_t done) {
          return move(file->get(), at + done, range.bytes - done, static_cast<uint64_t>(range.offset) + done);
        });
        if (number != 0) return failure(*error, number);
        at += range.bytes;
      }
      return {};
    };
    if (ticket.sink == nullptr || threads_ == nullptr) return work();
    // Who is told may close the file: it is let go of before.
    auto told = [work = std::function<Status()>(work), ticket]() mutable {
      Status status = work();
      work = nullptr;
      ticket.sink->put(ticket.number, std::move(status));
    };
    if (!threads_->run(std::move(told))) return work();
    return Outcome::later();
  }

  static Status failure(FileError& error, int number) {
    if (number == kTooShort) return Status::error(OFFPATH_ERR_FILE, "a file ends before what is to be read");
    int32_t none = 0;
    error.compare_exchange_strong(none, number);
    return Status::system_error(OFFPATH_ERR_FILE, number, "the file system refuses");
  }

  const std::shared_ptr<const OpenFile> file_;
  FileThreads* const threads_;
  const std::shared_ptr<FileError> error_;
  const bool locks_;
};

}  // namespace

std::unique_ptr<Port> make_file(std::shared_ptr<const OpenFile> file, FileThreads* threads,
                                std::shared_ptr<FileError> error, bool locks) {
  return std::make_unique<FilePort>(std::move(file), threads, std::move(error), locks);
}

}  // namespace offpath::memory
