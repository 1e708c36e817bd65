// SPDX-License-Identifier: BSD-3-Clause
// The host's end of a segment channel.
#include "base/memfd.hpp"
#include "device/channel.hpp"
#include "device/frames.hpp"
#include "device/futex.hpp"
#include "base/quiet_thread.hpp"
#include "device/segment.hpp"
#include "device/upcall_request.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace offpath::device {
namespace {

using base::Fd;
using base::Memfd;
using base::Result;
using base::Status;

constexpr std::chrono::microseconds kSpin{15};  // a short region ends sooner than a sleeper wakes
constexpr uint64_t kPopulateFrom = 256 << 10;   // bytes; below, single page faults cost less than asking

class SegmentChannel : public Channel {
 public:
  SegmentChannel(Fd socket, Memfd segment, const Description& description, const Listener& listener)
      : socket_(std::move(socket)),
        segment_(std::move(segment)),
        header_(*reinterpret_cast<SegmentHeader*>(segment_.data())),
        heap_address_(description.heap_address),
        heap_bytes_(description.heap_bytes),
        listener_(listener) {
    for (uint32_t slot = kSlots; slot-- > 0;) (slot < kReplySlots ? free_reply_slots_ : free_slots_).push_back(slot);
  }

  void start() {
    thread_ = base::quiet_thread([this] { listen(); });
  }

  void close() override {
    shutdown(socket_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }

  void leave_to_parent() override {
    lost_ = true;
    ::close(socket_.get());
  }

  Status write(uint64_t address, const void* from, uint64_t bytes) override {
    uint8_t* to = host_address(address);
    populate(address, bytes);
    memcpy(to, from, bytes);
    return {};
  }

  Status post_read(PendingRead&, uint64_t) override { return {}; }

  Status finish_read(PendingRead& read) override {
    memcpy(read.to, host_address(read.address), read.bytes);
    return {};
  }

  Status post(const Command& command, Pending& pending) override {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [&] { return !free_slots_.empty() || lost_; });
    if (lost_) return Status::error(OFFPATH_ERR_SERVICE_LOST, "the executor has gone");
    pending.slot = submit(command, free_slots_);
    return {};
  }

  Status wait(Pending& pending) override {
    Slot& slot = header_.slots[pending.slot];
    SlotState state = slot.state;
    const auto end_of_spin = std::chrono::steady_clock::now() + kSpin;
    while (state == SlotState::posted && !is_own_core(header_.takers_core) &&
           std::chrono::steady_clock::now() < end_of_spin) {
      relax();
      state = slot.state;
    }
    while (state != SlotState::done && state != SlotState::lost) {
      if (lost_) break;
      if (state == SlotState::watched || slot.state.compare_exchange_strong(state, SlotState::watched)) {
        futex_wait(slot.state, SlotState::watched);
      }
      state = slot.state;
    }
    if (state == SlotState::done) pending.answer = decode_answer(std::span<const uint8_t, Answer::kBytes>(slot.answer));
    {
      const std::lock_guard lock(mutex_);
      free_slots_.push_back(pending.slot);
    }
    freed_.notify_one();
    if (state != SlotState::done) return Status::error(OFFPATH_ERR_SERVICE_LOST, "the executor has gone");
    return {};
  }

  void discard(uint64_t address, uint64_t bytes) override {
    fallocate(segment_.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(kHeapOffset + (address - heap_address_)), static_cast<off_t>(bytes));
    const std::lock_guard lock(mutex_);
    populated_.clear();
  }

  void* view(uint64_t address, uint64_t bytes) const override {
    // The staging area lies just below the heap, in both address spaces.
    const uint64_t low = heap_address_ - kStagingBytes;
    const uint64_t length = kStagingBytes + heap_bytes_;
    if (address < low || bytes > length || address - low > length - bytes) return nullptr;
    return segment_.data() + kStagingOffset + (address - low);
  }

  bool lost() const override { return lost_; }

  std::optional<Fate> fate() const override {
    const std::lock_guard lock(mutex_);
    return fate_;
  }

  // Does not wait for the executor: the channel's thread calls it, too.
  void reply(uint64_t id, int32_t status, std::span<const offpath_span_t>) override {
    Command command;
    command.kind = Kind::reply;
    command.id = id;
    command.words[0] = static_cast<uint64_t>(status);
    const std::lock_guard lock(mutex_);
    if (lost_) return;
    replies_.push_back(command);
    submit_replies();
  }

 private:
  uint8_t* host_address(uint64_t address) const { return segment_.data() + kHeapOffset + (address - heap_address_); }

  // Under the lock, with a slot free. Returns the slot.
  uint32_t submit(const Command& command, std::vector<uint32_t>& free) {
    const uint32_t number = free.back();
    free.pop_back();
    Slot& slot = header_.slots[number];
    encode_header({command.kind, Command::kBytes, command.id}, slot.header);
    encode(command, std::span<uint8_t, Command::kBytes>(slot.command));
    slot.state = SlotState::posted;
    const uint32_t tail = header_.tail;
    header_.ring[tail % kSlots] = number;
    note_own_core(header_.posters_core);
    header_.tail = tail + 1;
    if (header_.lookers == 0 && header_.sleepers != 0) futex_wake(header_.tail, 1);
    return number;
  }

  // Under the lock. Of the reply that gets the last slot the executor tells when it has taken it: others may wait then.
  void submit_replies() {
    std::erase_if(taken_reply_slots_, [&](uint32_t number) {
      if (header_.slots[number].state != SlotState::done) return false;
      free_reply_slots_.push_back(number);
      return true;
    });
    for (; !replies_.empty() && !free_reply_slots_.empty(); replies_.pop_front()) {
      replies_.front().words[1] = free_reply_slots_.size() == 1 ? 1 : 0;
      taken_reply_slots_.push_back(submit(replies_.front(), free_reply_slots_));
    }
  }

  // Pages of a long block come in one call instead of one fault each.
  void populate(uint64_t address, uint64_t bytes) {
#ifdef MADV_POPULATE_WRITE
    if (bytes < kPopulateFrom) return;
    {
      const std::lock_guard lock(mutex_);
      if (populated_.size() > 4096) populated_.clear();
      uint64_t& known = populated_[address];
      if (known >= bytes) return;
      known = bytes;
    }
    const auto begin = reinterpret_cast<uintptr_t>(host_address(address)) & ~uintptr_t{4095};
    const auto end = reinterpret_cast<uintptr_t>(host_address(address)) + bytes;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
#endif
  }

  void listen() {
    FrameReader reader(socket_.get());
    const uint64_t number = next_channel_number();
    while (true) {
      const auto header = reader.header();
      if (!header.ok()) break;
      std::vector<uint8_t> body(header->body_bytes);
      if (!reader.read(body.data(), body.size()).ok()) break;
      if (header->kind == Kind::fate && body.size() == Fate::kBytes) {
        const std::lock_guard lock(mutex_);
        fate_ = decode_fate(std::span<const uint8_t, Fate::kBytes>(body));
      } else if (header->kind == Kind::upcall) {
        auto frame = decode_upcall(body);
        if (!frame.ok()) break;
        auto request = UpcallRequest::viewed(header->id, std::move(frame.value()), shared_from_this());
        if (!request.ok()) break;
        UpcallRequest::hand_over(std::move(request.value()), listener_, number);
      } else if (header->kind == Kind::answer && body.empty()) {
        const std::lock_guard lock(mutex_);
        submit_replies();
      } else {
        break;
      }
    }
    end();
    if (listener_.channel_lost != nullptr) listener_.channel_lost(number);
  }

  void end() {
    shutdown(socket_.get(), SHUT_RDWR);
    {
      const std::lock_guard lock(mutex_);
      lost_ = true;
    }
    freed_.notify_all();
    for (Slot& slot : header_.slots) {
      SlotState state = slot.state;
      while (state == SlotState::posted || state == SlotState::watched) {
        if (slot.state.compare_exchange_weak(state, SlotState::lost)) futex_wake(slot.state);
      }
    }
  }

  Fd socket_;
  Memfd segment_;
  SegmentHeader& header_;
  const uint64_t heap_address_;
  const uint64_t heap_bytes_;
  const Listener listener_;
  mutable std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<uint32_t> free_slots_, free_reply_slots_, taken_reply_slots_;
  std::deque<Command> replies_;                       // without a slot yet
  std::unordered_map<uint64_t, uint64_t> populated_;  // bytes by address whose pages are mapped here
  std::optional<Fate> fate_;
  std::atomic<bool> lost_{false};
  std::thread thread_;
};

}  // namespace

Result<std::shared_ptr<Channel>> open_segment_channel(Fd socket, Fd segment, const Description& description,
                                                      const Listener& listener) {
  if (description.segment_bytes != kHeapOffset + description.heap_bytes || description.heap_address < kHeapOffset) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "an executor's segment and heap do not fit each other");
  }
  auto memory = Memfd::adopt(std::move(segment), description.segment_bytes);
  if (!memory.ok()) return memory.status();
  const auto channel =
      std::make_shared<SegmentChannel>(std::move(socket), std::move(memory.value()), description, listener);
  channel->start();
  return std::shared_ptr<Channel>(channel);
}

}  // namespace offpath::device
