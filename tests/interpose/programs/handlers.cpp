// SPDX-License-Identifier: BSD-3-Clause
// Error handlers that call MPI, throw, or jump out of the call, as they may with Open MPI. What was called, with which class,
// one line a case, on rank 0 of 2, which alone makes mistakes; natively it prints the same. Afterwards both ranks make a
// communicator, and communicate.
#include "world.h"

#include <csetjmp>
#include <stdexcept>
#include <vector>

namespace {

constexpr int kBytes = 100000, kUnused = 4321;

enum Way { returns, calls, throws, jumps };
constexpr const char* kNames[] = {"returns", "calls", "throws", "jumps"};

struct Failed : std::runtime_error {
  explicit Failed(int which) : std::runtime_error("an MPI call failed"), code(which) {}
  int code;
};

Way way;
int handler_calls;
jmp_buf before;
MPI_Comm comm;
std::vector<char> out(kBytes), in(kBytes);

void handle(MPI_Comm*, int* code, ...) {
  ++handler_calls;
  int flag = 0;
  MPI_Message message;
  if (way == calls) {
    MPI_Iprobe(MPI_ANY_SOURCE, kUnused, comm, &flag, MPI_STATUS_IGNORE);
    MPI_Improbe(MPI_ANY_SOURCE, kUnused, comm, &flag, &message, MPI_STATUS_IGNORE);
  }
  if (way == throws) throw Failed(*code);
  if (way == jumps) longjmp(before, *code);
}

template <typename Call>
void make_mistake(const char* name, Call&& call) {
  handler_calls = 0;
  const char* volatile end = "jumped";
  volatile int code = setjmp(before);
  if (code == 0) {
    try {
      end = "returned";
      code = call();
    } catch (const Failed& failed) {
      end = "thrown";
      code = failed.code;
    }
  }
  if (rank == 0) printf("%s, %s: %s %s, handler calls %d\n", kNames[way], name, class_name(code), end, handler_calls);
  fflush(stdout);
}

void go_on() {
  MPI_Comm made;
  MPI_Request request;
  int one = 1, sum = 0;
  MPI_Comm_dup(comm, &made);
  MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Isend(out.data(), kBytes, MPI_BYTE, right_of, 1, made, &request);
  MPI_Recv(in.data(), kBytes, MPI_BYTE, left_of, 1, made, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&made);
  report("what follows", sum == size);
}

template <typename Call>
void try_call(const char* name, Call&& call) {
  if (rank == 0) make_mistake(name, call);
  go_on();
}

// Of a message that does not fit, both ranks.
void receive_too_little() {
  MPI_Request sent, received;
  MPI_Isend(out.data(), kBytes, MPI_BYTE, right_of, 2, comm, &sent);
  MPI_Irecv(in.data(), 1000, MPI_BYTE, left_of, 2, comm, &received);
  make_mistake("Wait", [&] { return MPI_Wait(&received, MPI_STATUS_IGNORE); });
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  go_on();
}

void try_all() {
  int flag;
  void* memory;
  MPI_Win win;
  MPI_Message message;
  MPI_Request request;
  try_call("Win_allocate", [&] { return MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_NULL, &memory, &win); });
  try_call("Barrier", [] { return MPI_Barrier(MPI_COMM_NULL); });
  try_call("Comm_dup", [&] { return MPI_Comm_dup(MPI_COMM_NULL, &comm); });
  for (const int wrong : {size, right_of}) {
    const int tag = wrong == size ? 1 : -7;
    try_call("Iprobe", [&] { return MPI_Iprobe(wrong, tag, comm, &flag, MPI_STATUS_IGNORE); });
    try_call("Probe", [&] { return MPI_Probe(wrong, tag, comm, MPI_STATUS_IGNORE); });
    try_call("Improbe", [&] { return MPI_Improbe(wrong, tag, comm, &flag, &message, MPI_STATUS_IGNORE); });
    try_call("Mprobe", [&] { return MPI_Mprobe(wrong, tag, comm, &message, MPI_STATUS_IGNORE); });
    try_call("Isend", [&] { return MPI_Isend(out.data(), kBytes, MPI_BYTE, wrong, tag, comm, &request); });
    try_call("Recv", [&] { return MPI_Recv(in.data(), kBytes, MPI_BYTE, wrong, tag, comm, MPI_STATUS_IGNORE); });
  }
  receive_too_little();
}

}  // namespace

int main(int argc, char** argv) {
  enter(&argc, &argv);
  MPI_Errhandler handler;
  MPI_Win win;  // with one MPI_Barrier is ours
  MPI_Win_create(out.data(), 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(&handle, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
#ifdef OPEN_MPI
  const int last = jumps;
#else
  const int last = returns;  // at MPI_THREAD_MULTIPLE MPICH calls handlers under its lock
#endif
  for (int each = returns; each <= last; ++each) {
    way = static_cast<Way>(each);
    try_all();
  }
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
  MPI_Win_free(&win);
  return finish();
}
