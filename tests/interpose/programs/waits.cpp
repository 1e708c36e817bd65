// SPDX-License-Identifier: BSD-3-Clause
// Waits inside MPI are noted in the program's own session of the C API, once that has tasks: rank 1 goes into each kind of call
// that blocks, or asks again and again, and rank 0 lets it come out when it has been seen to wait.
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
#include <ctime>
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
  uint64_t polls_until() const { return header->polls_until_ns.load(); }
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

// Rank 1 does nothing but ask until it was seen to; then rank 0 does what makes the answer another one.
void polls(const char* name, const std::function<void()>& begin, const std::function<bool()>& ask,
           const std::function<void()>& release) {
  const int number = ++round_number;
  if (rank == 0) {
    eventually([&] { return rounds_seen().load() >= number; });
    return release();
  }
  const uint64_t before = session->waited();
  begin();
  std::thread watcher([&] {
    check(eventually([] { return session->polls_until() != 0; }), name, "it was not seen to poll");
    rounds_seen().store(number);
  });
  while (!ask()) {
  }
  watcher.join();
  check(session->polls_until() == 0 && session->waited() > before, name, "the end of the polls was not noted");
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

// What has no communication of a service, or is made for others.
void more_kinds() {
  int given = 5, taken = 0;
  const int other = 1 - rank;
  const MPI_Comm world = MPI_COMM_WORLD;
  const auto both = [&](const char* name, const std::function<void()>& call) { blocks(name, call, call); };
  both("Sendrecv_replace",
       [&] { MPI_Sendrecv_replace(&taken, 1, MPI_INT, other, 0, other, 0, world, MPI_STATUS_IGNORE); });
  MPI_Message message;
  blocks(
      "Mprobe", [&] { MPI_Mprobe(0, 0, world, &message, MPI_STATUS_IGNORE); },
      [&] { MPI_Send(&given, 1, MPI_INT, 1, 0, world); });
  if (rank == 1) MPI_Mrecv(&taken, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  MPI_Comm near, copy;
  both("Dist_graph_create_adjacent", [&] {
    MPI_Dist_graph_create_adjacent(world, 1, &other, MPI_UNWEIGHTED, 1, &other, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &near);
  });
  both("Comm_dup", [&] { MPI_Comm_dup(world, &copy); });
  const int count = 1, counts[2] = {other == 0, other == 1}, none[2] = {0, 0};
  const int first = 0;
  const MPI_Aint start = 0;
  const MPI_Datatype types[2] = {MPI_INT, MPI_INT};
  both("Alltoallw", [&] { MPI_Alltoallw(&given, counts, none, types, &taken, counts, none, types, copy); });
  check(taken == 5, "Alltoallw", "what was received is wrong");
  both("Neighbor_allgather", [&] { MPI_Neighbor_allgather(&given, 1, MPI_INT, &taken, 1, MPI_INT, near); });
  both("Neighbor_allgatherv",
       [&] { MPI_Neighbor_allgatherv(&given, 1, MPI_INT, &taken, &count, &first, MPI_INT, near); });
  both("Neighbor_alltoall", [&] { MPI_Neighbor_alltoall(&given, 1, MPI_INT, &taken, 1, MPI_INT, near); });
  both("Neighbor_alltoallv",
       [&] { MPI_Neighbor_alltoallv(&given, &count, &first, MPI_INT, &taken, &count, &first, MPI_INT, near); });
  taken = 0;
  both("Neighbor_alltoallw",
       [&] { MPI_Neighbor_alltoallw(&given, &count, &start, types, &taken, &count, &start, types, near); });
  check(taken == 5, "Neighbor_alltoallw", "what was received is wrong");
  MPI_Win window;
  both("Win_create", [&] { MPI_Win_create(&given, sizeof(given), 1, MPI_INFO_NULL, copy, &window); });
  both("Win_fence", [&] { MPI_Win_fence(0, window); });
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  MPI_Group all, peer;
  MPI_Comm_group(copy, &all);
  MPI_Group_incl(all, 1, &other, &peer);
  const auto use = [&] { MPI_Win_start(peer, 0, window), MPI_Win_complete(window); };
  blocks(
      "Win_wait", [&] { MPI_Win_post(peer, 0, window), MPI_Win_wait(window); }, use);
  polls(
      "Win_test", [&] { MPI_Win_post(peer, 0, window); },
      [&] {
        int flag = 0;
        MPI_Win_test(window, &flag);
        return flag != 0;
      },
      use);
  both("Win_free", [&] { MPI_Win_free(&window); });
  MPI_Group_free(&all);
  MPI_Group_free(&peer);
  MPI_Comm_free(&near);
  MPI_Comm_free(&copy);
}

void all_polls() {
  int given = 5, taken = 0, flag = 0, index = 0, count = 0;
  MPI_Request request;
  MPI_Message message;
  const MPI_Comm world = MPI_COMM_WORLD;
  const auto post = [&] { MPI_Irecv(&taken, 1, MPI_INT, 0, 0, world, &request); };
  const auto send = [&] { MPI_Send(&given, 1, MPI_INT, 1, 0, world); };
  const auto with = [&](const char* name, const std::function<void()>& ask) {
    polls(
        name, post, [&] { return ask(), flag != 0; }, send);
  };
  with("Test", [&] { MPI_Test(&request, &flag, MPI_STATUS_IGNORE); });
  with("Testall", [&] { MPI_Testall(1, &request, &flag, MPI_STATUSES_IGNORE); });
  with("Testany", [&] { MPI_Testany(1, &request, &index, &flag, MPI_STATUS_IGNORE); });
  with("Testsome", [&] { MPI_Testsome(1, &request, &count, &index, MPI_STATUSES_IGNORE), flag = count; });
  with("Request_get_status", [&] { MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE); });
  if (rank == 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
  polls(
      "Iprobe", [] {}, [&] { return MPI_Iprobe(0, 0, world, &flag, MPI_STATUS_IGNORE), flag != 0; }, send);
  if (rank == 1) MPI_Recv(&taken, 1, MPI_INT, 0, 0, world, MPI_STATUS_IGNORE);
  polls(
      "Improbe", [] {}, [&] { return MPI_Improbe(0, 0, world, &flag, &message, MPI_STATUS_IGNORE), flag != 0; }, send);
  if (rank == 1) MPI_Mrecv(&taken, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
}

uint64_t own_time_ns() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<uint64_t>(used.tv_sec) * 1000000000 + static_cast<uint64_t>(used.tv_nsec);
}

// Who computes between its questions does not wait.
void asks_while_it_computes() {
  int word = 0, flag = 0;
  const int number = ++round_number;
  if (rank == 0) {
    eventually([&] { return rounds_seen().load() >= number; });
    MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    return;
  }
  MPI_Request request;
  MPI_Irecv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
  const uint64_t before = session->waited();
  for (int i = 0; i < 1000; ++i) {
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    const uint64_t begin_ns = own_time_ns();
    while (own_time_ns() - begin_ns < 40000) {
    }
  }
  check(flag == 0 && session->waited() == before && session->polls_until() == 0, "computing", "a wait was noted");
  rounds_seen().store(number);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
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
  more_kinds();
  all_polls();
  asks_while_it_computes();
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
