// SPDX-License-Identifier: BSD-3-Clause
// The executor's end of a segment channel: threads take commands from the ring themselves.
#include "base/memfd.hpp"
#include "device/arena.hpp"
#include "device/frames.hpp"
#include "device/futex.hpp"
#include "device/segment.hpp"
#include "executor/endpoint.hpp"
#include "executor/send_lock.hpp"

#include <sys/socket.h>

#include <chrono>
#include <mutex>
#include <vector>

namespace offpath::executor {
namespace {

using namespace offpath::device;
using base::Memfd;
using base::Result;
using base::Status;

class SegmentEndpoint : public Endpoint {
 public:
  SegmentEndpoint(int socket, Memfd segment, std::chrono::microseconds spin)
      : socket_(socket),
        spin_(spin),
        segment_(std::move(segment)),
        header_(*reinterpret_cast<SegmentHeader*>(segment_.data())),
        staging_(reinterpret_cast<uint64_t>(segment_.data()) + kStagingOffset, kStagingBytes) {
    heap_address_ = reinterpret_cast<uint64_t>(segment_.data()) + kHeapOffset;
    heap_bytes_ = segment_.bytes() - kHeapOffset;
  }

  bool take(Taken& taken) override {
    while (true) {
      const uint32_t tail = header_.tail;
      uint32_t head = header_.head;
      if (head == tail) {
        if (look(tail)) continue;
        ++header_.sleepers;
        if (header_.tail == tail) futex_wait(header_.tail, tail);
        --header_.sleepers;
        continue;
      }
      const uint32_t slot = header_.ring[head % kSlots] % kSlots;
      if (!header_.head.compare_exchange_strong(head, head + 1)) continue;
      note_own_core(header_.takers_core);
      const auto frame = decode_header(header_.slots[slot].header);
      if (!frame.ok()) {
        shutdown(socket_, SHUT_RDWR);  // the process ends with its channel
        return false;
      }
      taken.command =
          decode_command(frame.value(), std::span<const uint8_t, Command::kBytes>(header_.slots[slot].command));
      taken.slot = slot;
      return true;
    }
  }

  void answer(const Taken& taken, const Answer& answer) override {
    Slot& slot = header_.slots[taken.slot];
    encode(answer, std::span<uint8_t, Answer::kBytes>(slot.answer));
    if (slot.state.exchange(SlotState::done) == SlotState::watched) futex_wake(slot.state);
    if (taken.command.kind != Kind::reply || taken.command.words[1] == 0) return;
    const std::lock_guard lock(send_);
    [[maybe_unused]] const Status sent = send_frame(socket_, {Kind::answer, 0, taken.command.id}, {});
  }

  Status send_upcall(uint64_t id, const UpcallFrame& frame, std::span<const iovec>) override {
    const auto body = encode(frame);
    const std::lock_guard lock(send_);
    return send_frame(socket_, {Kind::upcall, static_cast<uint32_t>(body.size()), id}, body);
  }

  void send_fate(const Fate& fate) override {
    std::array<uint8_t, Fate::kBytes> body;
    encode(fate, body);
    send_.lock_for_last_words();
    [[maybe_unused]] const Status sent = send_frame(socket_, {Kind::fate, Fate::kBytes, 0}, body);
  }

  void* stage(uint64_t bytes) override {
    const std::lock_guard lock(staging_mutex_);
    return reinterpret_cast<void*>(staging_.allocate(bytes).value_or(0));
  }

  void unstage(void* room) override {
    const std::lock_guard lock(staging_mutex_);
    staging_.release(reinterpret_cast<uint64_t>(room));
  }

  bool shares_memory() const override { return true; }

 private:
  // Looks at the ring for a while; one thread at a time. True: there is something new.
  bool look(uint32_t tail) {
    if (spin_.count() == 0 || is_own_core(header_.posters_core) || header_.lookers.exchange(1) != 0) return false;
    const auto end = std::chrono::steady_clock::now() + spin_;
    while (header_.tail == tail && std::chrono::steady_clock::now() < end) relax();
    header_.lookers = 0;
    // Nobody was woken for what came meanwhile: this thread takes one, and wakes another if there is more.
    const uint32_t now = header_.tail;
    if (now - tail > 1 && header_.sleepers != 0) futex_wake(header_.tail, static_cast<int>(now - tail - 1));
    return now != tail;
  }

  const int socket_;
  const std::chrono::microseconds spin_;
  Memfd segment_;
  SegmentHeader& header_;
  SendLock send_;
  std::mutex staging_mutex_;
  Arena staging_;
};

}  // namespace

Result<std::unique_ptr<Endpoint>> open_segment_endpoint(int socket, Description description,
                                                        std::chrono::microseconds spin) {
  auto segment = Memfd::create("offpath-device", kHeapOffset + description.heap_bytes);
  if (!segment.ok()) {
    return Status::error(segment.status().code(), "%s, or lower OFFPATH_DEVICE_MEMORY_BYTES", segment.status().text());
  }
  const int descriptor = segment->fd();
  auto endpoint = std::make_unique<SegmentEndpoint>(socket, std::move(segment.value()), spin);
  description.heap_address = endpoint->heap_address();
  description.segment_bytes = kHeapOffset + description.heap_bytes;
  if (const Status status = send_hello(socket, description, descriptor); !status.ok()) return status;
  return std::unique_ptr<Endpoint>(std::move(endpoint));
}

}  // namespace offpath::executor
