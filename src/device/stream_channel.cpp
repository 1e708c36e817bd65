// SPDX-License-Identifier: BSD-3-Clause
// The host's end of a stream channel. Whoever has something to send sends it; the channel's thread reads all the time,
// so neither side ever waits for the other to read first.
#include "device/channel.hpp"
#include "device/frames.hpp"
#include "device/futex.hpp"
#include "base/quiet_thread.hpp"
#include "device/upcall_request.hpp"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace offpath::device {
namespace {

using base::Result;
using base::Status;

Status gone() { return Status::error(OFFPATH_ERR_SERVICE_LOST, "the executor has gone"); }

class StreamChannel : public Channel {
 public:
  StreamChannel(Connection connection, const Listener& listener)
      : connection_(std::move(connection)), listener_(listener) {}

  void start() {
    thread_ = base::quiet_thread([this] { listen(); });
  }

  void close() override {
    shutdown(connection_.socket.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }

  void leave_to_parent() override {
    lost_ = true;
    ::close(connection_.socket.get());
  }

  Status write(uint64_t address, const void* from, uint64_t bytes) override {
    const auto* next = static_cast<const uint8_t*>(from);
    while (bytes > 0) {
      const uint64_t part = std::min<uint64_t>(bytes, kMaxBodyBytes);
      const iovec piece{const_cast<uint8_t*>(next), part};
      if (const Status status = send(simple(Kind::put, address, part), std::span(&piece, 1)); !status.ok())
        return status;
      address += part;
      next += part;
      bytes -= part;
    }
    return {};
  }

  Status post_read(PendingRead& read, uint64_t after) override {
    Command command = simple(Kind::get, read.address, read.bytes);
    command.after = after;
    {
      const std::lock_guard lock(mutex_);
      if (lost_) {
        read.pending.done = kLost;
        return gone();
      }
      command.id = read.pending.id = next_read_++;
      reads_.emplace(command.id, &read);
    }
    return send_awaited(command);
  }

  Status finish_read(PendingRead& read) override { return sleep_until_done(read.pending); }

  Status post(const Command& command, Pending& pending) override {
    {
      const std::lock_guard lock(mutex_);
      if (lost_) return gone();
      pending.id = command.id;
      commands_.emplace(command.id, &pending);
    }
    return send_awaited(command);
  }

  Status wait(Pending& pending) override { return sleep_until_done(pending); }

  void discard(uint64_t address, uint64_t bytes) override {
    [[maybe_unused]] const Status sent = send(simple(Kind::discard, address, bytes));
  }

  void* view(uint64_t, uint64_t) const override { return nullptr; }
  bool lost() const override { return lost_; }

  std::optional<Fate> fate() const override {
    const std::lock_guard lock(mutex_);
    return fate_;
  }

  void reply(uint64_t id, int32_t status, std::span<const offpath_span_t> outputs) override {
    std::vector<iovec> parts;
    uint64_t bytes = 0;
    for (const offpath_span_t& output : outputs) {
      if (output.bytes > 0) parts.push_back({output.data, output.bytes});
      bytes += output.bytes;
    }
    Command command = simple(Kind::reply, static_cast<uint64_t>(status), bytes);
    command.id = id;
    [[maybe_unused]] const Status sent = send(command, parts);
  }

 private:
  static constexpr uint32_t kDone = 1, kLost = 2;  // Pending::done

  static Command simple(Kind kind, uint64_t first, uint64_t second) {
    Command command;
    command.kind = kind;
    command.words[0] = first;
    command.words[1] = second;
    return command;
  }

  // A broken connection is noticed by the reading thread, which ends what is underway.
  Status send(const Command& command, std::span<const iovec> more = {}) {
    const std::lock_guard lock(send_mutex_);
    if (lost_) return gone();
    const Status status = send_command(connection_.line, command, more);
    if (!status.ok()) shutdown(connection_.socket.get(), SHUT_RDWR);
    return {};
  }

  // What is posted stays in place until it has ended, also where it was not sent: end() ends it.
  Status send_awaited(const Command& command) {
    [[maybe_unused]] const Status sent = send(command);
    return {};
  }

  static Status sleep_until_done(Pending& pending) {
    while (pending.done == 0) futex_wait(pending.done, 0U);
    return pending.done == kDone ? Status() : gone();
  }

  static void finish(Pending& pending, uint32_t how) {
    // The waiter may free it as soon as it sees the word; waking an address needs no memory behind it.
    std::atomic<uint32_t>& word = pending.done;
    word = how;
    futex_wake(word);
  }

  template <typename Map>
  typename Map::mapped_type find(Map& map, uint64_t id) {
    const std::lock_guard lock(mutex_);
    const auto found = map.find(id);
    return found == map.end() ? nullptr : found->second;
  }
  template <typename Map>
  typename Map::mapped_type take(Map& map, uint64_t id) {
    const std::lock_guard lock(mutex_);
    auto node = map.extract(id);
    return node.empty() ? nullptr : node.mapped();
  }

  void listen() {
    FrameReader reader(connection_.line);
    const uint64_t number = next_channel_number();
    while (true) {
      const auto header = reader.header();
      if (!header.ok() || !handle(header.value(), reader, number)) break;
    }
    end();
    if (listener_.channel_lost != nullptr) listener_.channel_lost(number);
  }

  // False: the connection failed or what came makes no sense.
  bool handle(const FrameHeader& header, FrameReader& reader, uint64_t number) {
    switch (header.kind) {
      case Kind::answer:
        return handle_answer(header, reader);
      case Kind::data:
        return handle_data(header, reader);
      case Kind::upcall:
        return handle_upcall(header, reader, number);
      case Kind::fate: {
        std::array<uint8_t, Fate::kBytes> body;
        if (header.body_bytes != body.size() || !reader.read(body.data(), body.size()).ok()) return false;
        const std::lock_guard lock(mutex_);
        fate_ = decode_fate(body);
        return true;
      }
      default:
        return false;
    }
  }

  bool handle_answer(const FrameHeader& header, FrameReader& reader) {
    std::array<uint8_t, Answer::kBytes> body;
    if (header.body_bytes != body.size() || !reader.read(body.data(), body.size()).ok()) return false;
    Pending* pending = take(commands_, header.id);
    if (pending == nullptr) return false;
    pending->answer = decode_answer(body);
    finish(*pending, kDone);
    return true;
  }

  // Straight to where the program wants it.
  bool handle_data(const FrameHeader& header, FrameReader& reader) {
    PendingRead* read = find(reads_, header.id);
    if (read == nullptr || header.body_bytes == 0 || header.body_bytes > read->bytes - read->received) return false;
    if (!reader.read(static_cast<uint8_t*>(read->to) + read->received, header.body_bytes).ok()) return false;
    read->received += header.body_bytes;
    if (read->received < read->bytes) return true;
    take(reads_, header.id);
    finish(read->pending, kDone);
    return true;
  }

  bool handle_upcall(const FrameHeader& header, FrameReader& reader, uint64_t number) {
    std::vector<uint8_t> body(header.body_bytes);
    if (!reader.read(body.data(), body.size()).ok()) return false;
    auto frame = decode_upcall(body);
    if (!frame.ok()) return false;
    auto request = UpcallRequest::staged(header.id, std::move(frame.value()), shared_from_this());
    if (request == nullptr) return false;
    for (const offpath_span_t& input : request->input_spans()) {
      if (!reader.read(input.data, input.bytes).ok()) return false;
    }
    UpcallRequest::hand_over(std::move(request), listener_, number);
    return true;
  }

  void end() {
    shutdown(connection_.socket.get(), SHUT_RDWR);
    const std::lock_guard lock(mutex_);
    lost_ = true;
    for (auto& [id, pending] : commands_) finish(*pending, kLost);
    for (auto& [id, read] : reads_) finish(read->pending, kLost);
    commands_.clear();
    reads_.clear();
  }

  Connection connection_;
  const Listener listener_;
  std::mutex send_mutex_;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Pending*> commands_;
  std::unordered_map<uint64_t, PendingRead*> reads_;
  uint64_t next_read_ = 1;
  std::optional<Fate> fate_;
  std::atomic<bool> lost_{false};
  std::thread thread_;
};

}  // namespace

Result<std::shared_ptr<Channel>> open_stream_channel(Connection connection, const Description&,
                                                     const Listener& listener) {
  const auto channel = std::make_shared<StreamChannel>(std::move(connection), listener);
  channel->start();
  return std::shared_ptr<Channel>(channel);
}

}  // namespace offpath::device
