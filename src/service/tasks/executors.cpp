// SPDX-License-Identifier: BSD-3-Clause
#include "service/tasks/executors.hpp"

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "session/link.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

extern char** environ;

namespace offpath::service {

using base::Fd;
using base::Status;

namespace {

constexpr uint32_t kMaxEarlyEnds = 3;
constexpr const char* kSpinUs = "50";
constexpr int kFirst = 3;  // descriptors of an executor: board, bell, socket

Fd out_of_the_way(int fd) { return Fd(fcntl(fd, F_DUPFD_CLOEXEC, 16)); }

std::string describe_end(int status) {
  char text[96];
  if (WIFSIGNALED(status)) {
    snprintf(text, sizeof(text), "its executor was ended by signal %d (%s)", WTERMSIG(status),
             strsignal(WTERMSIG(status)));
  } else {
    snprintf(text, sizeof(text), "its executor has ended with status %d", WEXITSTATUS(status));
  }
  return text;
}

uint64_t ns_of(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_usec) * 1000;
}

}  // namespace

Executors::~Executors() {
  for (uint32_t number = 0; number < all_.size(); ++number) {
    kill(number);
    if (all_[number].process > 0) waitpid(all_[number].process, nullptr, 0);
  }
}

Status Executors::start_all() {
  for (uint32_t number = 0; number < all_.size(); ++number) {
    if (const Status status = start(number); !status.ok()) return status;
  }
  return {};
}

Status Executors::start(uint32_t number) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "no socket for an executor");
  Fd ours(ends[0]), theirs(ends[1]);
  const Fd given[3] = {out_of_the_way(board_.fd()), out_of_the_way(bell_), out_of_the_way(theirs.get())};
  std::vector<std::string> words = base::words_of(options_.command, "offpath-executor");
  words.insert(words.end(), {"--tasks", std::to_string(kFirst), "--tasks-bell", std::to_string(kFirst + 1),
                             "--socket-fd", std::to_string(kFirst + 2), "--tasks-service", std::to_string(getpid()),
                             "--tasks-memory", std::to_string(options_.memory_bytes), "--number",
                             std::to_string(number), "--spin-us", options_.spin ? kSpinUs : "0"});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int i = 0; i < 3; ++i) posix_spawn_file_actions_adddup2(&actions, given[i].get(), kFirst + i);
  memset(static_cast<void*>(&board_.header().last_words[number]), 0, sizeof(tasks::LastWords));
  Executor& executor = all_[number];
  executor.socket = std::move(ours);
  fcntl(executor.socket.get(), F_SETFL, O_NONBLOCK);  // one that is busy for long may not hear
  // Before it lives: it may have taken a task before this thread runs again.
  for (const auto& [client, memory] : clients_) tell(number, client, memory);
  const int error = posix_spawnp(&executor.process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    executor.process = -1;
    executor.socket.reset();
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, error,
                                "cannot execute '%.100s' (it runs the tasks). Install it", arguments[0]);
  }
  executor.given_up = nullptr;
  executor.stillness = base::Silence(kStoppedNs);
  executor.alive = base::open_process(executor.process);
  return {};
}

bool Executors::replace(uint32_t number) {
  if (++all_[number].early_ends > kMaxEarlyEnds) return false;
  const Status status = start(number);
  if (!status.ok()) base::log_write(base::LogLevel::error, "%s", status.text());
  return status.ok();
}

uint32_t Executors::living() const {
  uint32_t count = 0;
  for (const Executor& executor : all_) count += executor.process > 0 ? 1 : 0;
  return count;
}

uint64_t Executors::processor_ns() const {
  uint64_t sum_ns = ended_ns_;
  for (const Executor& executor : all_) sum_ns += executor.process > 0 ? base::process_clock_ns(executor.process) : 0;
  return sum_ns;
}

int Executors::ended_fd(uint32_t number) const {
  const Executor& executor = all_[number];
  if (executor.process <= 0) return -1;
  return executor.alive.valid() ? executor.alive.get() : executor.socket.get();
}

void Executors::kill(uint32_t number) {
  if (all_[number].process > 0) base::kill_process(all_[number].alive, all_[number].process);
}

void Executors::end_stopped(uint64_t now_ns, bool waits, uint64_t idle) {
  constexpr auto kSilent = base::Silence::Verdict::silent;
  const uint32_t taken = board_.header().taken.load(std::memory_order_relaxed);
  const bool takes = taken != std::exchange(taken_, taken) || !waits || idle == 0;
  const bool none_takes = taking_.look(now_ns, takes) == kSilent;
  for (uint32_t number = 0; number < all_.size(); ++number) {
    Executor& executor = all_[number];
    if (executor.process <= 0 || executor.given_up != nullptr) continue;
    const char* why = nullptr;
    if (executor.stillness.look(now_ns, !base::is_stopped(executor.process)) == kSilent)
      why = "its executor was stopped by a signal, did not go on for 2 s and was ended";
    if (none_takes && (idle >> number & 1) != 0) why = "its executor took no task for 5 s and was ended";
    if (why == nullptr) continue;
    kill(number);
    executor.given_up = why;
  }
}

std::string Executors::take_last_words(uint32_t number, int32_t& signal) {
  Executor& executor = all_[number];
  int status = 0;
  kill(number);  // where the end was heard by its socket, which it may have closed itself
  rusage spent{};
  while (wait4(executor.process, &status, 0, &spent) < 0 && errno == EINTR) {
  }
  ended_ns_ += ns_of(spent.ru_utime) + ns_of(spent.ru_stime);
  executor.process = -1;
  executor.alive.reset();
  executor.socket.reset();
  signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (executor.given_up != nullptr) return executor.given_up;
  tasks::LastWords said;  // user code may write there
  memcpy(static_cast<void*>(&said), &board_.header().last_words[number], sizeof(said));
  if (said.said == 0) return describe_end(status);
  char text[256];
  if (said.is_exit != 0) {
    snprintf(text, sizeof(text), "it called exit(%d)", said.exit_status);
    return text;
  }
  said.object[sizeof(said.object) - 1] = '\0';
  const char* name = strsignal(said.signal);
  const bool at_address = said.signal == SIGSEGV || said.signal == SIGBUS;
  int used =
      snprintf(text, sizeof(text), "it crashed with signal %d (%.40s)", said.signal, name == nullptr ? "?" : name);
  if (at_address) {
    used += snprintf(text + used, sizeof(text) - static_cast<size_t>(used), " at address 0x%llx",
                     static_cast<unsigned long long>(said.address));
  }
  snprintf(text + used, sizeof(text) - static_cast<size_t>(used), " in %s+0x%llx",
           said.object[0] == '\0' ? "unknown code" : said.object, static_cast<unsigned long long>(said.offset));
  return text;
}

void Executors::add_client(uint64_t client, int file, uint64_t bytes) {
  const Client memory = clients_.insert_or_assign(client, Client{file, bytes}).first->second;
  for (uint32_t number = 0; number < all_.size(); ++number) tell(number, client, memory);
  if (board_.post(tasks::kNoEntry)) board_.wake_executors(static_cast<int>(all_.size()));
}

void Executors::remove_client(uint64_t client) {
  if (clients_.erase(client) == 0) return;
  for (uint32_t number = 0; number < all_.size(); ++number) tell(number, client, {-1, 0});
  if (board_.post(tasks::kNoEntry)) board_.wake_executors(static_cast<int>(all_.size()));
}

// What does not fit into the socket's buffer is not said: then a task says that it cannot reach its memory.
void Executors::tell(uint32_t number, uint64_t client, const Client& memory) {
  if (!all_[number].socket.valid()) return;
  const tasks::ClientMemory said{client, memory.bytes};
  const Status sent =
      session::send_message(all_[number].socket.get(), &said, sizeof(said), memory.bytes > 0 ? memory.file : -1);
  if (!sent.ok()) base::log_write(base::LogLevel::warn, "an executor does not hear of a client: %s", sent.text());
}

}  // namespace offpath::service
