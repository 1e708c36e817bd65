// SPDX-License-Identifier: BSD-3-Clause
#include "device/device.hpp"

#include "device/frames.hpp"
#include "device/region_name.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

namespace offpath::device {

using base::Result;
using base::Status;

namespace {

uint64_t next_id() {
  static std::atomic<uint64_t> next{1};
  return next++;
}

Command make(Kind kind, std::initializer_list<uint64_t> words) {
  Command command;
  command.kind = kind;
  command.id = next_id();
  std::copy(words.begin(), words.end(), command.words.begin());
  return command;
}

}  // namespace

Result<std::unique_ptr<Device>> Device::open(Connection connection, const Options& options) {
  auto hello = receive_hello(connection.line, options.timeout_ms);
  if (!hello.ok()) return hello.status();
  const Listener listener{options.serve_upcall, options.channel_lost};
  const Description& description = hello->description;
  auto channel = description.segment_bytes != 0 ? open_segment_channel(std::move(connection.socket),
                                                                       std::move(hello->segment), description, listener)
                                                : open_stream_channel(std::move(connection), description, listener);
  if (!channel.ok()) return channel.status();
  return std::unique_ptr<Device>(new Device(options, description, std::move(channel.value())));
}

Device::Device(Options options, const Description& description, std::shared_ptr<Channel> channel)
    : options_(std::move(options)),
      description_(description),
      arena_(description.heap_address, description.heap_bytes),
      channel_(std::move(channel)) {}

Device::~Device() { channel_->close(); }

void Device::leave_to_parent() {
  parents_ = true;
  channel_->leave_to_parent();
}

Result<std::vector<uint64_t>> Device::load(std::span<const uint8_t> image, std::span<const char* const> names) {
  std::string list;
  for (const char* name : names) list.append(name).push_back('\0');
  const auto place = allocate(image.size() + 64);
  const auto names_place = allocate(list.size() + 1);
  const auto results_place = allocate(8 * names.size() + 8);
  std::vector<uint64_t> addresses(names.size());
  Status status;
  for (const auto* result : {&place, &names_place, &results_place}) {
    if (status.ok()) status = result->status();
  }
  Queue queue;
  if (status.ok()) status = write(place.value(), image.data(), image.size(), queue);
  if (status.ok()) status = write(names_place.value(), list.data(), list.size(), queue);
  if (status.ok()) {
    status = run(make(Kind::load, {place.value(), image.size(), names_place.value(), list.size(), names.size(),
                                   results_place.value(), static_cast<uint64_t>(options_.number)}));
  }
  if (status.ok()) status = read(addresses.data(), results_place.value(), 8 * names.size(), queue);
  if (status.ok()) status = wait(queue);
  for (const auto* result : {&place, &names_place, &results_place}) {
    if (result->ok()) [[maybe_unused]]
      const Status released = release(result->value());
  }
  if (!status.ok()) return status;
  Image loaded{image, {}};
  for (size_t i = 0; i < names.size(); ++i) {
    uint64_t& address = addresses[i];  // little endian, as everything an executor writes
    if constexpr (std::endian::native == std::endian::big) address = __builtin_bswap64(address);
    loaded.entries.emplace(address, names[i]);
  }
  const std::lock_guard lock(mutex_);
  images_.push_back(std::move(loaded));
  return addresses;
}

Result<uint64_t> Device::allocate(uint64_t bytes) {
  if (parents_) return lost();  // whose books and locks these are
  const std::lock_guard lock(mutex_);
  const auto address = arena_.allocate(bytes);
  if (address) return *address;
  return Status::error(OFFPATH_ERR_NO_MEMORY,
                       "device %d (%.60s) has no room for %llu bytes (%llu of %llu are in use). Map less at a time, or "
                       "raise OFFPATH_DEVICE_MEMORY_BYTES",
                       options_.number, options_.name.c_str(), static_cast<unsigned long long>(bytes),
                       static_cast<unsigned long long>(arena_.used()),
                       static_cast<unsigned long long>(description_.heap_bytes));
}

Status Device::release(uint64_t address) {
  if (parents_) return lost();
  const std::lock_guard lock(mutex_);
  if (!arena_.release(address)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "device %d (%.60s): nothing was allocated at 0x%llx", options_.number,
                         options_.name.c_str(), static_cast<unsigned long long>(address));
  }
  for (const Span& span : arena_.take_excess()) channel_->discard(span.address, span.bytes);
  return {};
}

bool Device::in_heap(uint64_t address, uint64_t bytes) const {
  return address >= description_.heap_address && bytes <= description_.heap_bytes &&
         address - description_.heap_address <= description_.heap_bytes - bytes;
}

Status Device::write(uint64_t address, const void* from, uint64_t bytes, Queue& queue) {
  if (const Status status = wait(queue); !status.ok()) return status;
  if (channel_->lost()) return lost();
  if (bytes == 0) return {};
  if (in_heap(address, bytes)) return channel_->write(address, from, bytes);
  const auto place = allocate(bytes);
  if (!place.ok()) return place.status();
  Status status = channel_->write(place.value(), from, bytes);
  if (status.ok()) status = run(make(Kind::copy, {address, place.value(), bytes}));
  [[maybe_unused]] const Status released = release(place.value());
  return status;
}

Status Device::read(void* to, uint64_t address, uint64_t bytes, Queue& queue) {
  if (channel_->lost()) return lost();
  if (bytes == 0) return {};
  if (in_heap(address, bytes)) {
    PendingRead& read = queue.reads_.emplace_back();
    read.to = to;
    read.address = address;
    read.bytes = bytes;
    return channel_->post_read(read, queue.launched_ ? queue.launch_.id : 0);
  }
  if (const Status status = settle(queue); !status.ok()) return status;
  const auto place = allocate(bytes);
  if (!place.ok()) return place.status();
  Status status = run(make(Kind::copy, {place.value(), address, bytes}));
  if (status.ok()) {
    PendingRead read;
    read.to = to;
    read.address = place.value();
    read.bytes = bytes;
    status = channel_->post_read(read, 0);
    if (status.ok()) status = channel_->finish_read(read);
  }
  [[maybe_unused]] const Status released = release(place.value());
  return status;
}

Status Device::copy(uint64_t to, uint64_t from, uint64_t bytes, Queue& queue) {
  if (const Status status = wait(queue); !status.ok()) return status;
  return run(make(Kind::copy, {to, from, bytes}));
}

Status Device::launch(uint64_t entry, std::span<const uint64_t> arguments, Queue& queue) {
  if (channel_->lost()) return lost();
  if (const Status status = wait(queue); !status.ok()) return status;
  if (arguments.size() > kMaxArguments) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "a region with %zu arguments (limit %u). Map a struct instead",
                         arguments.size(), kMaxArguments);
  }
  Command command = make(Kind::launch, {entry, arguments.size()});
  if (arguments.size() <= kInlineArguments) {
    std::copy(arguments.begin(), arguments.end(), command.words.begin() + 2);
  } else {
    const auto place = allocate(8 * arguments.size());
    if (!place.ok()) return place.status();
    queue.arguments_ = place.value();
    const Status status = channel_->write(place.value(), arguments.data(), 8 * arguments.size());
    if (!status.ok()) return status;
    command.words[2] = place.value();
  }
  queue.entry_ = entry;
  queue.launch_.id = command.id;
  queue.launch_.done = 0;
  const Status status = channel_->post(command, queue.launch_);
  queue.launched_ = status.ok();
  return status.ok() ? status : lost();
}

Status Device::settle(Queue& queue) {
  if (!queue.launched_) return {};
  queue.launched_ = false;
  const Status status = channel_->wait(queue.launch_);
  if (queue.arguments_ != 0) [[maybe_unused]]
    const Status released = release(std::exchange(queue.arguments_, 0));
  if (!status.ok()) return lost(queue.entry_);
  const Answer& answer = queue.launch_.answer;
  if (answer.status == OFFPATH_OK) return {};
  return Status::error(answer.status, "device %d (%.60s): %s %s", options_.number, options_.name.c_str(), answer.text,
                       place_of(queue.entry_).c_str());
}

Status Device::wait(Queue& queue) {
  Status status = settle(queue);
  for (PendingRead& read : queue.reads_) {
    const Status finished = channel_->finish_read(read);
    if (status.ok() && !finished.ok()) status = lost();
  }
  queue.reads_.clear();
  return status;
}

Status Device::run(const Command& command) {
  Pending pending;
  pending.id = command.id;
  if (!channel_->post(command, pending).ok() || !channel_->wait(pending).ok()) return lost();
  if (pending.answer.status == OFFPATH_OK) return {};
  return Status::error(pending.answer.status, "device %d (%.60s): %s", options_.number, options_.name.c_str(),
                       pending.answer.text);
}

void* Device::view(uint64_t address, uint64_t bytes) const {
  return in_heap(address, bytes) ? channel_->view(address, bytes) : nullptr;
}

Status Device::state() const { return channel_->lost() ? lost() : Status(); }

std::string Device::place_of(uint64_t entry) const {
  return entry == 0 ? "outside any region" : "in the target region at " + region_of(entry);
}

std::string Device::region_of(uint64_t entry) const {
  const std::lock_guard lock(mutex_);
  for (const Image& image : images_) {
    const auto found = image.entries.find(entry);
    if (found == image.entries.end()) continue;
    const std::string file = source_file(image.bytes, found->second);
    return region_name(found->second) + (file.empty() ? "" : " in " + file);
  }
  return "unknown";
}

Status Device::lost(uint64_t entry) const {
  if (parents_) {
    return Status::error(OFFPATH_ERR_SERVICE_LOST,
                         "device %d (%.60s) is the parent's, who used it before the fork. Fork before the first target "
                         "region, or start a program in the child",
                         options_.number, options_.name.c_str());
  }
  const auto fate = channel_->fate();
  if (!fate) {
    return Status::error(OFFPATH_ERR_SERVICE_LOST,
                         "device %d (%.60s) has gone: its executor was killed, called _exit or ran out of stack, or "
                         "the way to it is broken%s",
                         options_.number, options_.name.c_str(),
                         entry == 0 ? "" : (" (" + place_of(entry) + ")").c_str());
  }
  const std::string region = place_of(fate->entry);
  if (fate->signal == 0) {
    return Status::error(OFFPATH_ERR_SERVICE_LOST, "device %d (%.60s): exit(%d) was called %s (a region must return)",
                         options_.number, options_.name.c_str(), fate->exit_status, region.c_str());
  }
  std::string line;
  {
    const std::lock_guard lock(mutex_);
    if (fate->image < images_.size()) line = source_line(images_[fate->image].bytes, fate->offset);
  }
  return Status::error(OFFPATH_ERR_SERVICE_LOST, "device %d (%.60s): %s (address 0x%llx)%s%s %s", options_.number,
                       options_.name.c_str(), strsignal(fate->signal),
                       static_cast<unsigned long long>(fate->fault_address), line.empty() ? "" : " at ", line.c_str(),
                       region.c_str());
}

}  // namespace offpath::device
