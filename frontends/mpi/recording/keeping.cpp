// SPDX-License-Identifier: BSD-3-Clause
// The beginning and the end of a log: its file, and where that goes.
#include "base/clock.hpp"
#include "mpi/recording/handing_in.hpp"
#include "mpi/recording/log.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>

namespace offpath::mpi::recording {

namespace {

// The file of a rank.
struct FileName {
  FileName(const char* prefix, int rank) { snprintf(text, sizeof(text), "%s.%06d", prefix, rank); }
  char text[PATH_MAX];
};

// As a JSON string; host names hold what they like.
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

uint64_t realtime_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t sample_of(const char* variable) {
  const char* text = variable == nullptr ? nullptr : secure_getenv(variable);
  return text == nullptr ? 1 : std::max<uint64_t>(1, strtoull(text, nullptr, 10));
}

}  // namespace

uint64_t Log::now_ns() { return base::clock_ns(); }

void Log::start(const char* prefix, const Purpose& purpose) {
  // Whatever goes wrong on this rank, the others must not wait for it.
  if (native.Comm_dup(MPI_COMM_WORLD, &comm_) != MPI_SUCCESS) return;
  native.Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  // All leave the barrier at about the same time: that is the common zero of their clocks.
  native.Barrier(comm_);
  start_ns_ = base::clock_ns();
  try {
    prefix_ = prefix;
    open(prefix, purpose);
  } catch (const std::exception&) {
    on_ = false;
  }
}

void Log::open(const char* prefix, const Purpose& purpose) {
  const std::string more = purpose.open == nullptr ? "" : purpose.open();
  int rank = 0, size = 1;
  native.Comm_rank(MPI_COMM_WORLD, &rank);
  native.Comm_size(MPI_COMM_WORLD, &size);
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  const std::lock_guard lock(mutex_);
  callers.find_wrappers();
  part_.open(FileName(prefix, rank).text);
  if (!part_.ok()) return;
  polls_ = purpose.polls;
  sample_ = sample_of(purpose.sample_variable);
#ifdef OPEN_MPI
  const char* mpi = "openmpi";
#else
  const char* mpi = "mpich";
#endif
  part_.write_header(std::string("{\"format\": \"") + purpose.format + "\", \"version\": 1, \"rank\": " +
                     std::to_string(rank) + ", \"ranks\": " + std::to_string(size) + ", \"host\": " + quoted(host) +
                     ", \"mpi\": \"" + mpi + "\", \"zero_ns\": " + std::to_string(start_ns_) +
                     ", \"realtime_ns\": " + std::to_string(realtime_ns() - since_start_ns()) +
                     (sample_ > 1 ? ", \"sample\": " + std::to_string(sample_) : "") + more + "}");
  // A child of the program names regions, too, and has a copy of all this: even of a lock that somebody may hold.
  pthread_atfork(nullptr, nullptr, [] { log.on_ = false; });
  on_ = true;
}

void Log::stop(uint64_t end_ns) {
  const std::lock_guard lock(mutex_);
  if (!on_) return;
  on_ = false;
  user_regions_.end_all(part_, end_ns);
  part_.add(Tag::end, 0, 0, EndBody{end_ns, operations_left_out_, waits_left_out_});
  part_.finish();
}

void Log::hand_in() {
  if (comm_ == MPI_COMM_NULL) return;
  const std::lock_guard lock(mutex_);
  int file = -1, of_rank = -1;
  const auto keep = [&](int rank, std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    if (rank != of_rank) {
      if (file >= 0) close(file);
      file = ::open(FileName(prefix_.c_str(), rank).text, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
      of_rank = rank;
    }
    if (file >= 0 && !write_to_part(file, bytes)) {
      close(file);
      file = -1;
    }
  };
  const int keeper = find_keeper(comm_, part_.in_place() ? 1 : 0);
  if (keeper >= 0)
    mpi::hand_in(
        comm_, keeper, [this](std::span<std::byte> room) { return part_.read(room); }, std::ref(keep));
  if (file >= 0) close(file);
  part_.drop();
  native.Comm_free(&comm_);
}

}  // namespace offpath::mpi::recording
