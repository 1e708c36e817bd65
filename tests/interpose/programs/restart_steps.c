/* SPDX-License-Identifier: BSD-3-Clause
 * A program whose services are replaced while its ranks do this or that. Arguments: a folder, the story. It leaves "ready-<n>" when the
 * n-th moment has come, and goes on once "go-<n>" is there. It says the longest wait of its exchanges. */
#include "persistent_names.h"
#include "world.h"

#include <string.h>

enum { OFTEN = 8 };

static int wrong;
static double longest;

static int may_go(int number) { return access(numbered_path("go", number), F_OK) == 0; }
static void tell(int number) { make_file(numbered_path("ready", number)); }

/* Without MPI, or with it: then it answers others. */
static void compute_until(int number) {
  while (!may_go(number)) usleep(1000);
}
static void look_until(int number) {
  for (int found; !may_go(number); usleep(1000))
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

static void exchange(MPI_Comm comm, int count) {
  int own, members, sum;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_size(comm, &members);
  for (int i = 0; i < count; ++i) {
    const int mine = own + i;
    MPI_Request request;
    const double begin = MPI_Wtime();
    MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    const double took = MPI_Wtime() - begin;
    if (took > longest) longest = took;
    wrong += sum != members * (members - 1) / 2 + members * i;
  }
}

/* Around a ring, longer than what is native by the policy that has messages. */
static void pass_on(int round) {
  enum { LENGTH = 20000 };
  static unsigned char mine[LENGTH], from_left[LENGTH];
  MPI_Request requests[2];
  for (int i = 0; i < LENGTH; ++i) mine[i] = (unsigned char)(i + round + rank);
  MPI_Irecv(from_left, LENGTH, MPI_BYTE, left_of, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(mine, LENGTH, MPI_BYTE, right_of, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < LENGTH; ++i) wrong += from_left[i] != (unsigned char)(i + round + left_of);
}

/* Of one service to the next one and the one after that: rank 1 is ready for the first change before the second, and says where it is
 * after that; rank 0 in between. */
static void twice(void) {
  exchange(MPI_COMM_WORLD, 3);
  if (rank == 0) tell(0);
  rank == 0 ? compute_until(0) : look_until(0);
  if (rank == 0) tell(1);
  rank == 0 ? look_until(1) : compute_until(1);
  exchange(MPI_COMM_WORLD, 3);
}

/* Rank 1 has moved on, and has nothing at the old service but a communicator that nobody has used; rank 0 has something there, with a
 * rank that computes. They use it only then. */
static void unused(void) {
  MPI_Comm with_two, first, second;
  int go;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 1 ? MPI_UNDEFINED : 0, rank, &with_two);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 2 ? MPI_UNDEFINED : 0, rank, &first);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 2 ? MPI_UNDEFINED : 0, rank, &second);
  if (rank != 1) exchange(with_two, 3);
  if (rank == 2) compute_until(1);
  if (rank != 2) {
    if (rank == 0) tell(0);
    do {
      exchange(first, 10);
      usleep(1000);
      go = may_go(0);
      MPI_Bcast(&go, 1, MPI_INT, 0, first);
    } while (!go);
    exchange(second, 3);
    MPI_Comm_free(&first);
    MPI_Comm_free(&second);
    if (rank == 0) tell(1);
    look_until(1);
  }
  if (rank != 1) {
    exchange(with_two, 3);
    MPI_Comm_free(&with_two);
  }
}

/* The communicator goes on to the next service while rank 0 makes a persistent collective on it, and waits for rank 1 in that. */
static void persistent(void) {
  int mine, sum;
  MPI_Request request;
  exchange(MPI_COMM_WORLD, 3);
  if (rank == 0) tell(0);
  compute_until(0);
  if (rank == 0) tell(1);
  if (rank != 0) look_until(1);
  INIT_OF(Allreduce)(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int i = 0; i < 3; ++i) {
    mine = rank + i;
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    wrong += sum != size * (size - 1) / 2 + size * i;
  }
  MPI_Request_free(&request);
  exchange(MPI_COMM_WORLD, 3);
}

/* The service is replaced again and again, while all go on. */
static void often(void) {
  int go;
  exchange(MPI_COMM_WORLD, 3);
  for (int moment = 0; moment < OFTEN; ++moment) {
    if (rank == 0) tell(moment);
    do {
      exchange(MPI_COMM_WORLD, 10);
      for (int round = 0; round < 3; ++round) pass_on(moment + round);
      usleep(1000);
      go = may_go(moment);
      MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    } while (!go);
  }
}

static const struct {
  const char* name;
  void (*run)(void);
} stories[] = {{"twice", twice}, {"unused", unused}, {"persistent", persistent}, {"often", often}};

int main(int argc, char** argv) {
  enter(&argc, &argv);
  folder = argv[1];
  for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); ++i)
    if (strcmp(argv[2], stories[i].name) == 0) stories[i].run();
  double most;
  MPI_Reduce(&longest, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("longest %.3f\n", most);
  report("after the restarts", wrong == 0);
  return finish();
}
