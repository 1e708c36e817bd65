// SPDX-License-Identifier: BSD-3-Clause
#include "recording/log.hpp"

#include "recording/decision.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <numeric>

namespace offpath::mpi::recording {

Log log;

namespace {

constexpr size_t kWriteBytes = size_t{1} << 20;

// As a JSON string; paths hold what they like.
std::string quoted(const char* text) {
  std::string result = "\"";
  for (; *text != '\0'; ++text) {
    const auto c = static_cast<unsigned char>(*text);
    char escape[8];
    if (c < ' ' || c >= 0x7f) {
      snprintf(escape, sizeof(escape), "\\u%04x", c);
      result += escape;
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += static_cast<char>(c);
    }
  }
  return result + '"';
}

std::string number(uint64_t value) { return std::to_string(value); }

}  // namespace

uint64_t Log::now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void Log::start(const std::string& prefix, const Purpose& purpose) {
  const std::string more = purpose.open == nullptr ? "" : purpose.open();
  int rank = 0, size = 1;
  native.Comm_rank(MPI_COMM_WORLD, &rank);
  native.Comm_size(MPI_COMM_WORLD, &size);
  char name[32], host[256] = "";
  snprintf(name, sizeof(name), ".%06d", rank);
  gethostname(host, sizeof(host) - 1);
  const std::lock_guard lock(mutex_);
  file_ = open((prefix + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) return;
  // All leave the barrier at about the same time: that is the common zero of their clocks.
  native.Barrier(MPI_COMM_WORLD);
  start_ns_ = now_ns();
  polls_ = purpose.polls;
  on_ = true;
#ifdef OPEN_MPI
  const char* mpi = "openmpi";
#else
  const char* mpi = "mpich";
#endif
  lines_ += std::string("{\"format\": \"") + purpose.format + "\", \"version\": 1, \"rank\": " + std::to_string(rank) +
            ", \"ranks\": " + std::to_string(size) + ", \"host\": " + quoted(host) + ", \"mpi\": \"" + mpi + "\"" +
            more + "}\n";
}

void Log::stop(uint64_t end_ns) {
  const std::lock_guard lock(mutex_);
  if (!on_) return;
  lines_ += "{\"end_ns\": " + number(end_ns) + "}\n";
  flush();
  on_ = false;
  close(file_);
}

void Log::flush() {
  for (size_t done = 0; done < lines_.size();) {
    const ssize_t written = write(file_, lines_.data() + done, lines_.size() - done);
    if (written <= 0) {
      on_ = false;
      break;
    }
    done += static_cast<size_t>(written);
  }
  lines_.clear();
}

// Call sites are the file that holds the caller and the offset in it: symbols are looked up offline.
const std::string& Log::place_of(const void* site) {
  const auto [entry, is_new] = places_.try_emplace(site);
  Dl_info info;
  if (is_new && site != nullptr && dladdr(site, &info) != 0 && info.dli_fname != nullptr) {
    const auto offset = static_cast<const char*>(site) - static_cast<const char*>(info.dli_fbase);
    entry->second = ", \"file\": " + quoted(info.dli_fname) + ", \"offset\": " + std::to_string(offset);
  }
  return entry->second;
}

void Log::write_call(const Call& call) {
  lines_ += ", \"call\": \"";
  lines_ += call.name;
  lines_ += "\", \"begin_ns\": ";
  lines_ += number(call.begin_ns);
  lines_ += ", \"end_ns\": ";
  lines_ += number(since_start_ns());
  lines_ += place_of(call.site);
}

void Log::add(const char* name, const std::vector<uint64_t>& values) {
  lines_ += std::string("\"") + name + "\": [";
  for (size_t i = 0; i < values.size(); ++i) lines_ += (i == 0 ? "" : ", ") + number(values[i]);
  lines_ += ']';
}

void Log::end_line() {
  lines_ += "}\n";
  if (lines_.size() >= kWriteBytes) flush();
}

int Log::number_of(MPI_Comm comm) {
  if (const auto it = communicators_.find(comm); it != communicators_.end()) return it->second;
  int size = 0;
  MPI_Group group, world;
  native.Comm_group(comm, &group);
  native.Comm_group(MPI_COMM_WORLD, &world);
  native.Group_size(group, &size);
  std::vector<int> ranks(static_cast<size_t>(size)), members(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  native.Group_translate_ranks(group, size, ranks.data(), world, members.data());
  native.Group_free(&group);
  native.Group_free(&world);
  lines_ += "{\"comm\": " + std::to_string(next_communicator_) + ", ";
  add("members", {members.begin(), members.end()});
  end_line();
  return communicators_[comm] = next_communicator_++;
}

void Log::post_locked(const Call& call, uint64_t operation, const Posted& posted, int communicator, bool blocking) {
  lines_ += "{\"op\": " + number(operation) + ", \"kind\": \"" + posted.kind +
            "\", \"comm\": " + std::to_string(communicator) + ", \"bytes\": " + number(posted.bytes) +
            ", \"root\": " + std::to_string(posted.root) + (blocking ? ", \"blocking\": true" : "");
  if (decision.why != nullptr) {
    lines_ += decision.offloaded ? ", \"path\": \"dpu\", \"why\": \"" : ", \"path\": \"host\", \"why\": \"";
    lines_ += decision.why;
    lines_ += "\", \"algorithm\": \"";
    lines_ += decision.algorithm;
    lines_ += '"';
  }
  if (!posted.sent_bytes.empty()) {
    lines_ += ", ";
    add("sent_bytes", posted.sent_bytes);
  }
  write_call(call);
  end_line();
}

void Log::post(const Call& call, uint64_t operation, const Posted& posted, MPI_Comm comm, bool blocking) {
  const std::lock_guard lock(mutex_);
  post_locked(call, operation, posted, number_of(comm), blocking);
}

void Log::serve(uint64_t operation, const offpath_op_times_t* times, int status) {
  const std::lock_guard lock(mutex_);
  if (!on_) return;
  lines_ += "{\"served\": " + number(operation) + ", \"status\": " + std::to_string(status) +
            ", \"seen_ns\": " + number(since_start_ns());
  if (times != nullptr && times->posted_ns >= start_ns_) {
    const uint64_t first_ns = times->first_byte_ns;
    lines_ += ", \"posted_ns\": " + number(times->posted_ns - start_ns_) +
              ", \"started_ns\": " + number(times->started_ns - start_ns_) +
              (first_ns == 0 ? "" : ", \"first_byte_ns\": " + number(first_ns - start_ns_)) +
              ", \"done_ns\": " + number(times->done_ns - start_ns_) +
              ", \"last_peer\": " + std::to_string(times->last_peer);
  }
  end_line();
}

void Log::wait(const Call& call, const std::vector<uint64_t>& operations, bool complete) {
  if (!complete && !polls_) return;
  const std::lock_guard lock(mutex_);
  lines_ += '{';
  add(complete ? "wait" : "test", operations);
  write_call(call);
  end_line();
}

void Log::remember(MPI_Request request, uint64_t operation) {
  const std::lock_guard lock(mutex_);
  requests_[request] = operation;
}

void Log::remember_persistent(MPI_Request request, const Posted& posted, MPI_Comm comm) {
  const std::lock_guard lock(mutex_);
  persistent_[request] = {posted, comm, decision.why};
}

void Log::start_persistent(const Call& call, uint64_t operation, MPI_Request request) {
  const std::lock_guard lock(mutex_);
  const auto it = persistent_.find(request);
  if (it == persistent_.end()) return;
  const Persistent& known = it->second;
  if (decision.why == nullptr) decision.why = known.why;
  post_locked(call, operation, known.posted, number_of(known.comm), false);
  requests_[request] = operation;
}

std::vector<uint64_t> Log::operations_of(const std::vector<MPI_Request>& requests) {
  const std::lock_guard lock(mutex_);
  std::vector<uint64_t> operations;
  for (const MPI_Request request : requests) {
    if (const auto it = requests_.find(request); it != requests_.end()) operations.push_back(it->second);
  }
  return operations;
}

void Log::forget(const std::vector<MPI_Request>& requests) {
  const std::lock_guard lock(mutex_);
  for (const MPI_Request request : requests) requests_.erase(request);
}

void Log::remember_window(MPI_Win window, MPI_Comm comm) {
  const std::lock_guard lock(mutex_);
  windows_[window] = number_of(comm);
}

void Log::forget_window(MPI_Win window) {
  const std::lock_guard lock(mutex_);
  windows_.erase(window);
}

bool Log::post_remote(const Call& call, uint64_t operation, const Posted& posted, MPI_Win window) {
  const std::lock_guard lock(mutex_);
  const auto it = windows_.find(window);
  if (it == windows_.end()) return false;
  post_locked(call, operation, posted, it->second, false);
  remote_.push_back({window, posted.root, operation});
  return true;
}

std::vector<uint64_t> Log::take_remote(MPI_Win window, int target) {
  const std::lock_guard lock(mutex_);
  std::vector<uint64_t> operations;
  std::erase_if(remote_, [&](const Remote& remote) {
    if (remote.window != window || (target >= 0 && remote.target != target)) return false;
    operations.push_back(remote.operation);
    return true;
  });
  return operations;
}

void Log::forget_communicator(MPI_Comm comm) {
  const std::lock_guard lock(mutex_);
  communicators_.erase(comm);
}

}  // namespace offpath::mpi::recording
