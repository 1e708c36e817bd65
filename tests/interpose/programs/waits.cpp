// SPDX-License-Identifier: BSD-3-Clause
// Waits inside MPI are noted in the program's own session of the C API, once that has tasks: rank 1 goes into each kind of call
// that blocks, and rank 0 lets it come out when it has been seen to wait.
#include "session/layout.hpp"

#include <mpi.h>
#include <offpath/offpath.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>

namespace {

namespace layout = offpath::session;

constexpr int kPolls = 20000;  // of a millisecond
bool wrong = false;

void check(bool right, const char* name, const char* what) {
  if (right) return;
  std::fprintf(stderr, "%s: %s\n", name, what);
  wrong = true;
}

// What both ranks see without MPI.
std::atomic<int>& rounds_seen() {
  static auto* seen = [] {
    const int file = open("seen", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void* page =
        ftruncate(file, 4096) == 0 ? mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (page == MAP_FAILED) std::exit(1);
    close(file);
    return static_cast<std::atomic<int>*>(page);
  }();
  return *seen;
}

template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < kPolls && !condition(); ++i) usleep(1000);
  return condition();
}

struct Session {
  offpath_session_t* handle = nullptr;
  layout::SegmentHeader* header = nullptr;

  Session() {
    offpath_attach_params_t params{};
    params.struct_bytes = sizeof(params);
    params.flags = OFFPATH_ATTACH_NODE_ONLY;
    offpath_error_t error{};
    void* shared = nullptr;
    check(getrandom(params.job_token, sizeof(params.job_token), 0) > 0, "token", "there are no random numbers");
    if (offpath_session_attach(&params, &handle, &error) != OFFPATH_OK ||
        offpath_memory_allocate(handle, 4096, &shared) != OFFPATH_OK) {
      std::fprintf(stderr, "attach: %s\n", error.text);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    // The shared memory lies behind the control part, and this is its first block.
    header = reinterpret_cast<layout::SegmentHeader*>(static_cast<char*>(shared) - layout::kSegmentBytes);
    check(header->magic == layout::kMagic, "segment", "it is not where it is looked for");
  }
  void have_tasks() const {
    const offpath_function_params_t params{sizeof(params), 0, OFFPATH_TEST_FUNCTIONS, "nothing", "nothing 1"};
    offpath_function_t* function = nullptr;
    offpath_error_t error{};
    if (offpath_function_register(handle, &params, &function, &error) == OFFPATH_OK) return;
    check(false, "register", error.text);
  }
  uint64_t since() const { return header->waiting_since_ns.load(); }
  uint64_t waited() const { return header->waited_ns.load(); }
};

int rank = 0, round_number = 0;
const Session* session = nullptr;  // of rank 1

// Rank 1 waits in `call` until it was seen to; rank 0 does what ends that.
void blocks(const char* name, const std::function<void()>& call, const std::function<void()>& release) {
  const int number = ++round_number;
  if (rank == 0) {
    eventually([&] { return rounds_seen().load() >= number; });
    return release();
  }
  const uint64_t before = session->waited();
  std::thread watcher([&] {
    check(eventually([] { return session->since() != 0; }), name, "the wait was not noted");
    rounds_seen().store(number);
  });
  call();
  watcher.join();
  check(session->since() == 0 && session->waited() > before, name, "the end of the wait was not noted");
}

void all_kinds() {
  int given = 5, taken = 0;
  MPI_Request requests[2];
  const MPI_Comm world = MPI_COMM_WORLD;
  const auto post = [&] { MPI_Irecv(&taken, 1, MPI_INT, 0, 0, world, &requests[0]); };
  const auto send = [&] { MPI_Send(&given, 1, MPI_INT, 1, 0, world); };
  const auto both = [&](const char* name, const std::function<void()>& call) { blocks(name, call, call); };
  int index = 0, count = 0;
  blocks(
      "Wait", [&] { post(), MPI_Wait(&requests[0], MPI_STATUS_IGNORE); }, send);
  blocks(
      "Waitall", [&] { post(), MPI_Waitall(1, requests, MPI_STATUSES_IGNORE); }, send);
  blocks(
      "Waitany", [&] { post(), MPI_Waitany(1, requests, &index, MPI_STATUS_IGNORE); }, send);
  blocks(
      "Waitsome", [&] { post(), MPI_Waitsome(1, requests, &count, &index, MPI_STATUSES_IGNORE); }, send);
  blocks(
      "Recv", [&] { MPI_Recv(&taken, 1, MPI_INT, 0, 0, world, MPI_STATUS_IGNORE); }, send);
  blocks(
      "Probe", [&] { MPI_Probe(0, 0, world, MPI_STATUS_IGNORE); }, send);
  if (rank == 1) MPI_Recv(&taken, 1, MPI_INT, 0, 0, world, MPI_STATUS_IGNORE);
  blocks(
      "Ssend", [&] { MPI_Ssend(&given, 1, MPI_INT, 0, 0, world); },
      [&] { MPI_Recv(&taken, 1, MPI_INT, 1, 0, world, MPI_STATUS_IGNORE); });
  const int other = 1 - rank;
  both("Sendrecv",
       [&] { MPI_Sendrecv(&given, 1, MPI_INT, other, 0, &taken, 1, MPI_INT, other, 0, world, MPI_STATUS_IGNORE); });
  check(taken == 5, "Sendrecv", "what was received is wrong");
  both("Barrier", [&] { MPI_Barrier(world); });
  both("Bcast", [&] { MPI_Bcast(&given, 1, MPI_INT, 0, world); });
  both("Allreduce", [&] { MPI_Allreduce(&given, &taken, 1, MPI_INT, MPI_SUM, world); });
  check(taken == 10, "Allreduce", "the sum is wrong");
  both("Reduce", [&] { MPI_Reduce(&given, &taken, 1, MPI_INT, MPI_SUM, 1, world); });
  int gathered[2] = {0, 0};
  both("Gather", [&] { MPI_Gather(&given, 1, MPI_INT, gathered, 1, MPI_INT, 1, world); });
  both("Allgather", [&] { MPI_Allgather(&given, 1, MPI_INT, gathered, 1, MPI_INT, world); });
  check(gathered[0] == 5 && gathered[1] == 5, "Allgather", "what was gathered is wrong");
}

// What the program says itself counts as it says it.
void noted_by_the_program() {
  int word = 0;
  if (rank == 0) {
    MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    return;
  }
  const uint64_t before = session->waited(), begin = 1000, end = 1250;
  offpath_session_note_wait(session->handle, begin, 0);
  MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check(session->since() == begin, "own", "the program's own wait was overwritten");
  offpath_session_note_wait(session->handle, begin, end);
  check(session->waited() == before + (end - begin), "own", "the program's own wait was counted twice");
}

void keeps_errno() {
  MPI_Request none = MPI_REQUEST_NULL;
  errno = 77;
  MPI_Wait(&none, MPI_STATUS_IGNORE);
  check(errno == 77, "errno", "it was changed");
}

// Two threads that wait are one wait, until the last one's end.
void by_two_threads() {
  int words[2] = {0, 0}, said = 0;
  MPI_Comm world = MPI_COMM_WORLD;
  const int first = round_number + 1, second = round_number + 2;
  round_number += 2;
  if (rank == 0) {
    eventually([&] { return rounds_seen().load() >= first; });
    MPI_Send(&words[0], 1, MPI_INT, 1, 1, world);
    eventually([&] { return rounds_seen().load() >= second; });
    MPI_Send(&words[1], 1, MPI_INT, 1, 2, world);
    MPI_Recv(&said, 1, MPI_INT, 1, 3, world, MPI_STATUS_IGNORE);
    return;
  }
  std::thread longer([&] { MPI_Recv(&words[1], 1, MPI_INT, 0, 2, world, MPI_STATUS_IGNORE); });
  check(eventually([] { return session->since() != 0; }), "threads", "the wait was not noted");
  const uint64_t since = session->since();
  rounds_seen().store(first);
  MPI_Recv(&words[0], 1, MPI_INT, 0, 1, world, MPI_STATUS_IGNORE);
  check(session->since() == since, "threads", "the end of one thread's wait ended that of both");
  rounds_seen().store(second);
  longer.join();
  check(session->since() == 0, "threads", "the end of the wait was not noted");
  MPI_Send(&said, 1, MPI_INT, 0, 3, world);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  rounds_seen();
  if (rank == 1) session = new Session;
  const uint64_t before = session == nullptr ? 0 : session->waited();
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) check(session->waited() == before, "without tasks", "a wait was noted");
  if (rank == 1) session->have_tasks();
  all_kinds();
  noted_by_the_program();
  keeps_errno();
  if (provided == MPI_THREAD_MULTIPLE) by_two_threads();
  if (rank == 1) offpath_session_detach(session->handle);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  if (rank == 0) unlink("seen");
  if (rank == 1) std::printf("%s\n", wrong ? "WRONG" : "ok");
  return wrong ? 1 : 0;
}
