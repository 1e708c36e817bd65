// SPDX-License-Identifier: BSD-3-Clause
// The executor's end of a stream channel. One idle thread at a time reads; the one that reads a command leaves the
// reading to the next and runs the command itself; so it is with gets, as the host may send while nobody takes their data.
// Puts are done while reading.
#include "device/frames.hpp"
#include "executor/endpoint.hpp"
#include "executor/send_lock.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace offpath::executor {
namespace {

using namespace offpath::device;
using base::Result;
using base::Status;

class StreamEndpoint : public Endpoint {
 public:
  StreamEndpoint(const Line& line, void* heap, uint64_t bytes, ReplyTargets& targets)
      : line_(line), reader_(line), targets_(targets) {
    heap_address_ = reinterpret_cast<uint64_t>(heap);
    heap_bytes_ = bytes;
  }

  bool take(Taken& taken) override {
    const std::lock_guard lock(read_mutex_);
    while (!ended_) {
      const auto header = reader_.header();
      std::array<uint8_t, Command::kBytes> body;
      ended_ = !header.ok() || header->body_bytes != body.size() || !reader_.read(body.data(), body.size()).ok();
      if (ended_) break;
      taken.command = decode_command(header.value(), body);
      const Kind kind = taken.command.kind;
      if (kind == Kind::launch) {
        const std::lock_guard running(running_mutex_);
        running_.try_emplace(taken.command.id);
        return true;
      }
      if (kind == Kind::load || kind == Kind::copy) return true;
      ended_ = !serve(taken.command);
      if (!ended_ && (kind == Kind::reply || (kind == Kind::get && !must_wait(taken.command)))) return true;
    }
    shutdown(line_.socket(), SHUT_RDWR);  // the process ends with its channel
    return false;
  }

  void answer(const Taken& taken, const Answer& answer) override {
    if (taken.command.kind == Kind::reply) return;
    if (taken.command.kind == Kind::get) return send_data(taken.command);
    std::array<uint8_t, Answer::kBytes> body;
    encode(answer, body);
    {
      const std::lock_guard lock(send_);
      [[maybe_unused]] const Status sent = send_frame(line_, {Kind::answer, Answer::kBytes, taken.command.id}, body);
    }
    if (taken.command.kind != Kind::launch) return;
    std::vector<Command> waiting;
    {
      const std::lock_guard lock(running_mutex_);
      waiting = std::move(running_.extract(taken.command.id).mapped());
    }
    for (const Command& get : waiting) send_data(get);
  }

  Status send_upcall(uint64_t id, const UpcallFrame& frame, std::span<const iovec> inputs) override {
    const auto body = encode(frame);
    const std::lock_guard lock(send_);
    return send_frame(line_, {Kind::upcall, static_cast<uint32_t>(body.size()), id}, body, inputs);
  }

  void send_fate(const Fate& fate) override {
    std::array<uint8_t, Fate::kBytes> body;
    encode(fate, body);
    send_.lock_for_last_words();
    [[maybe_unused]] const Status sent = send_frame(line_, {Kind::fate, Fate::kBytes, 0}, body);
  }

  void* stage(uint64_t) override { return nullptr; }
  void unstage(void*) override {}
  bool shares_memory() const override { return false; }

 private:
  // True: its launch is still running, and whoever runs that sends the data then.
  bool must_wait(const Command& get) {
    const std::lock_guard lock(running_mutex_);
    const auto launch = running_.find(get.after);
    if (launch == running_.end()) return false;
    launch->second.push_back(get);
    return true;
  }

  // What the endpoint does itself. False: it makes no sense, or the connection failed.
  bool serve(const Command& command) {
    const uint64_t address = command.words[0], bytes = command.words[1];
    if (command.kind == Kind::reply) return receive_outputs(command);
    if (!in_heap(address, bytes)) return false;
    switch (command.kind) {
      case Kind::put:
        return reader_.read(reinterpret_cast<void*>(address), bytes).ok();
      case Kind::get:
        return true;
      case Kind::discard:
        return address % 4096 == 0 && madvise(reinterpret_cast<void*>(address), bytes, MADV_DONTNEED) == 0;
      default:
        return false;
    }
  }

  bool receive_outputs(const Command& reply) {
    uint64_t bytes = 0;
    const auto outputs = targets_.outputs_of(reply.id);
    for (const offpath_span_t& output : outputs) bytes += output.bytes;
    if (bytes != reply.words[1]) return false;
    return std::all_of(outputs.begin(), outputs.end(),
                       [&](const offpath_span_t& output) { return reader_.read(output.data, output.bytes).ok(); });
  }

  void send_data(const Command& get) {
    for (uint64_t sent = 0; sent < get.words[1];) {
      const uint64_t part = std::min<uint64_t>(get.words[1] - sent, kMaxBodyBytes);
      const iovec piece{reinterpret_cast<void*>(get.words[0] + sent), part};
      const std::lock_guard lock(send_);
      if (!send_frame(line_, {Kind::data, static_cast<uint32_t>(part), get.id}, {}, std::span(&piece, 1)).ok()) return;
      sent += part;
    }
  }

  const Line line_;
  FrameReader reader_;
  ReplyTargets& targets_;
  std::mutex read_mutex_;
  bool ended_ = false;
  SendLock send_;
  std::mutex running_mutex_;
  std::unordered_map<uint64_t, std::vector<Command>> running_;  // launches, with the gets that wait for them
};

}  // namespace

Result<std::unique_ptr<Endpoint>> open_stream_endpoint(const Line& line, Description description,
                                                       ReplyTargets& targets) {
  void* heap =
      mmap(nullptr, description.heap_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (heap == MAP_FAILED) {
    return Status::system_error(OFFPATH_ERR_NO_MEMORY, errno, "cannot reserve %llu bytes for regions",
                                static_cast<unsigned long long>(description.heap_bytes));
  }
  auto endpoint = std::make_unique<StreamEndpoint>(line, heap, description.heap_bytes, targets);
  description.heap_address = endpoint->heap_address();
  if (const Status status = send_hello(line, description, -1); !status.ok()) return status;
  return std::unique_ptr<Endpoint>(std::move(endpoint));
}

}  // namespace offpath::executor
