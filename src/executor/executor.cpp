// SPDX-License-Identifier: BSD-3-Clause
#include "executor/executor.hpp"

#include "base/environment.hpp"
#include "device/device_list.hpp"
#include "device/frames.hpp"
#include "executor/last_words.hpp"
#include "executor/own_memory.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

namespace offpath::executor {

using base::Environment;
using base::Status;
using device::Answer;
using device::Command;
using device::Kind;

namespace {

// An Arm program whose /proc/cpuinfo is that of another processor runs under an emulator.
bool emulated() {
#if defined(__x86_64__)
  return false;
#else
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("vendor_id", 0) == 0) return true;
  }
  return false;
#endif
}

device::Description describe(const Options& options) {
  device::Description description;
  description.kind = emulated() ? device::DeviceKind::emulated : options.kind;
  description.machine = device::own_machine();
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof(cores), &cores);
  description.cores = static_cast<uint32_t>(CPU_COUNT(&cores));
  description.max_clients = options.max_clients;
  description.process = static_cast<uint32_t>(getpid());
  const uint64_t physical =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  const uint64_t limit = options.memory_bytes != 0 ? options.memory_bytes : physical / 2;
  const uint64_t wanted = Environment::number("OFFPATH_DEVICE_MEMORY_BYTES", limit, 1 << 20, uint64_t{1} << 45);
  description.heap_bytes = std::min(wanted, limit) / 4096 * 4096;
  utsname names{};
  uname(&names);
  snprintf(description.system, sizeof(description.system), "%.20s %.40s", names.sysname, names.release);
  return description;
}

// Answers when its block ends, also where a region ends its thread, which is unwound then.
struct Answering {
  Endpoint& endpoint;
  const Taken& taken;
  Answer answer{OFFPATH_ERR_STATE, "pthread_exit was called (a region must return)"};
  ~Answering() { endpoint.answer(taken, answer); }
};

}  // namespace

Executor& the_executor() {
  static auto* executor = new Executor;  // never destroyed: threads use it until the process ends
  return *executor;
}

Status Executor::open(const Options& options) {
  options_ = options;
  device::Description description = describe(options);
  auto endpoint = options.segment ? open_segment_endpoint(options.socket, description, options.spin)
                                  : open_stream_endpoint(options.line, description, upcalls_);
  if (endpoint.ok()) {
    endpoint_ = std::move(endpoint.value());
    upcalls_.set_endpoint(endpoint_.get());
    leave_words_to_host(*endpoint_, images_);
    return {};
  }
  const Status status = endpoint.status();
  description.status = status.code();
  snprintf(description.text, sizeof(description.text), "%s", status.text());
  [[maybe_unused]] const Status sent = device::send_hello(options.line, description, -1);
  return status;
}

// In a child that a region has forked: the channel must not stay open with it, nor hear its end. Its number stays taken.
void Executor::leave_to_parent() {
  parents_ = true;
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (dup2(nothing, options_.socket) < 0) close(options_.socket);
}

void Executor::serve() {
  pthread_atfork(nullptr, nullptr, [] { the_executor().leave_to_parent(); });
  add_thread();
  add_thread();
  // The host has ended when its end of the socket is closed; regions that still run end with us.
  pollfd wait{options_.socket, POLLRDHUP, 0};
  while (poll(&wait, 1, -1) < 0 && errno == EINTR) {
  }
}

void Executor::add_thread() {
  ++idle_;
  ++threads_;
  std::thread([this] { work(); }).detach();
}

void Executor::work() {
  prepare_thread();
  Taken taken;
  while (endpoint_->take(taken)) {
    if (taken.command.kind == Kind::reply) {
      endpoint_->answer(taken, {});
      upcalls_.answered(taken.command.id, static_cast<int32_t>(taken.command.words[0]));
      continue;
    }
    if (--idle_ == 0 && threads_ < kMaxThreads) add_thread();
    {
      Answering answering{*endpoint_, taken};
      answering.answer = run(taken.command);
      if (parents_) _exit(0);  // who answers
    }
    ++idle_;
  }
}

Answer Executor::run(const Command& command) {
  Status status;
  switch (command.kind) {
    case Kind::load:
      status = load(command);
      break;
    case Kind::launch:
      status = launch(command);
      break;
    case Kind::copy:
      status = copy_checked(command.words[0], command.words[1], command.words[2]);
      break;
    case Kind::get:  // the endpoint answers with the data
      break;
    default:
      status =
          Status::error(OFFPATH_ERR_ARGUMENT, "the executor has no command %u", static_cast<unsigned>(command.kind));
  }
  Answer answer;
  answer.status = status.code();
  if (!status.ok()) snprintf(answer.text, sizeof(answer.text), "%s", status.text());
  return answer;
}

Status Executor::load(const Command& command) {
  const uint64_t image = command.words[0], image_bytes = command.words[1];
  const uint64_t list = command.words[2], list_bytes = command.words[3];
  const uint64_t count = command.words[4], results = command.words[5];
  if (!endpoint_->in_heap(image, image_bytes) || !endpoint_->in_heap(list, list_bytes) || count > list_bytes ||
      !endpoint_->in_heap(results, 8 * count)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "an image or its entries lie outside the heap");
  }
  number_ = static_cast<int>(command.words[6]);
  const std::string text(reinterpret_cast<const char*>(list), list_bytes);
  std::vector<std::string> names;
  for (size_t begin = 0; begin < text.size() && names.size() < count;) {
    const size_t end = std::min(text.find('\0', begin), text.size());
    names.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  const auto addresses = images_.load({reinterpret_cast<const uint8_t*>(image), image_bytes}, names);
  if (!addresses.ok()) return addresses.status();
  memcpy(reinterpret_cast<void*>(results), addresses.value().data(), 8 * addresses.value().size());
  return {};
}

Status Executor::launch(const Command& command) {
  const uint64_t entry = command.words[0];
  const uint64_t count = command.words[1];
  std::span<const uint64_t> arguments(command.words.data() + 2, std::min<uint64_t>(count, device::kInlineArguments));
  if (count > device::kInlineArguments) {
    if (count > device::kMaxArguments || !endpoint_->in_heap(command.words[2], 8 * count)) {
      return Status::error(OFFPATH_ERR_ARGUMENT, "%llu arguments of a region lie outside the heap",
                           static_cast<unsigned long long>(count));
    }
    arguments = {reinterpret_cast<const uint64_t*>(command.words[2]), count};
  }
  set_current_region(entry);
  call_entry(entry, arguments);
  set_current_region(0);
  fflush(stdout);
  return {};
}

}  // namespace offpath::executor
