/* SPDX-License-Identifier: BSD-3-Clause
 * Programs whose collectives change their path while they run. Usage: adapting MODE */
#include "check.h"
#include "persistent_names.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { MAX_OPEN = 12 };

static int count = 16384; /* integers for each rank */

struct Exchange {
  int *send, *recv;
  MPI_Request request;
};

static void post(struct Exchange* one, MPI_Comm comm, int round) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  if (one->send == NULL) {
    one->send = malloc(sizeof(int) * (size_t)(count * size));
    one->recv = malloc(sizeof(int) * (size_t)(count * size));
  }
  for (int p = 0; p < size; ++p)
    for (int i = 0; i < count; i += 97) one->send[p * count + i] = value_of(rank, p, i, round);
  MPI_Ialltoall(one->send, count, MPI_INT, one->recv, count, MPI_INT, comm, &one->request);
}

static int arrived(const struct Exchange* one, MPI_Comm comm, int round) {
  int rank, size, ok = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int p = 0; p < size; ++p)
    for (int i = 0; i < count; i += 97) ok &= one->recv[p * count + i] == value_of(p, rank, i, round);
  return ok;
}

static void discard(struct Exchange* one) {
  free(one->send);
  free(one->recv);
}

/* `turns` exchanges, `open` under way at a time. */
static int run(MPI_Comm comm, int turns, int open) {
  struct Exchange all[MAX_OPEN];
  int ok = 1;
  memset(all, 0, sizeof(all));
  for (int turn = 0; turn < turns; turn += open) {
    for (int i = 0; i < open; ++i) post(&all[i], comm, turn + i);
    for (int i = open - 1; i >= 0; --i) MPI_Wait(&all[i].request, MPI_STATUS_IGNORE);
    for (int i = 0; i < open; ++i) ok &= arrived(&all[i], comm, turn + i);
  }
  for (int i = 0; i < open; ++i) discard(&all[i]);
  return ok;
}

/* Nobody begins one before all have completed the last. */
static void steady(int turns) {
  int ok = 1;
  for (int turn = 0; turn < turns; ++turn) {
    ok &= run(MPI_COMM_WORLD, 1, 1);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  report("steady", ok);
}

static MPI_Info info_of(const char* path) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "offpath_path", path);
  return info;
}

static void prefer(MPI_Comm comm, const char* path) {
  MPI_Info info = info_of(path);
  MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
}

/* Ten calls each: the driver counts which way they went. */
static void preferences(void) {
  static const char* kPaths[] = {"host", "dpu", "freeze", "auto"};
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 2; ++i) {
    MPI_Comm comm;
    MPI_Info info = info_of(rank == 0 ? kPaths[i] : kPaths[1 - i]); /* rank 0's counts */
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    report(kPaths[i], run(comm, 10, 1));
    prefer(comm, kPaths[1 - i]);
    report("changed", run(comm, 10, 2));
    prefer(comm, "nonsense");
    report("unknown", run(comm, 10, 1));
    prefer(comm, "freeze");
    report("frozen", run(comm, 10, 1));
    MPI_Comm_free(&comm);
    MPI_Info_free(&info);
  }
}

/* Some are freed with an agreement open, and with requests. */
static void freed(void) {
  int ok = 1;
  for (int i = 0; i < 30; ++i) {
    MPI_Comm comm;
    struct Exchange last = {NULL, NULL, MPI_REQUEST_NULL};
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    ok &= run(comm, 1 + i % 17, 1);
    post(&last, comm, i);
    MPI_Comm gone = comm;
    MPI_Comm_free(&gone);
    MPI_Wait(&last.request, MPI_STATUS_IGNORE);
    ok &= arrived(&last, MPI_COMM_WORLD, i);
    discard(&last);
  }
  report("freed", ok);
}

/* Two communicators and two persistent exchanges, on every rank in another order. */
static void orders(void) {
  int rank, size, ok = 1;
  MPI_Comm comms[2];
  struct Exchange all[2], kept[2];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  memset(all, 0, sizeof(all));
  for (int i = 0; i < 2; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    kept[i].send = calloc((size_t)(count * size), sizeof(int));
    kept[i].recv = calloc((size_t)(count * size), sizeof(int));
    INIT_OF(Alltoall)
    (kept[i].send, count, MPI_INT, kept[i].recv, count, MPI_INT, comms[0], MPI_INFO_NULL, &kept[i].request);
  }
  for (int turn = 0; turn < 150; ++turn) {
    for (int i = 0; i < 2; ++i) {
      const int which = (i + rank + turn) % 2;
      for (int p = 0; p < size; ++p)
        for (int k = 0; k < count; k += 97) kept[which].send[p * count + k] = value_of(rank, p, k, turn + which);
      post(&all[which], comms[which], turn);
      MPI_Start(&kept[which].request);
    }
    for (int i = 0; i < 2; ++i) {
      const int which = (i + rank / 2) % 2;
      MPI_Wait(&kept[which].request, MPI_STATUS_IGNORE);
      MPI_Wait(&all[which].request, MPI_STATUS_IGNORE);
      ok &= arrived(&kept[which], MPI_COMM_WORLD, turn + which) && arrived(&all[which], comms[which], turn);
    }
  }
  for (int i = 0; i < 2; ++i) {
    MPI_Request_free(&kept[i].request);
    discard(&kept[i]);
    discard(&all[i]);
    MPI_Comm_free(&comms[i]);
  }
  report("orders", ok);
}

struct Worker {
  pthread_t thread;
  MPI_Comm comm;
  int open, ok;
};

static void* work(void* argument) {
  struct Worker* worker = argument;
  worker->ok = run(worker->comm, 144, worker->open);
  return NULL;
}

static void threads(void) {
  struct Worker workers[3];
  int ok = 1;
  for (int i = 0; i < 3; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
    workers[i].open = 1 + i;
  }
  for (int i = 0; i < 3; ++i) pthread_create(&workers[i].thread, NULL, work, &workers[i]);
  for (int i = 0; i < 3; ++i) {
    pthread_join(workers[i].thread, NULL);
    ok &= workers[i].ok;
    MPI_Comm_free(&workers[i].comm);
  }
  report("threads", ok);
}

/* Rank 0 is ahead of the others by so many calls as are open at most, again and again. */
static void ahead(void) {
  int rank, ok = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  struct Exchange all[MAX_OPEN];
  memset(all, 0, sizeof(all));
  for (int turn = 0; turn < 30; ++turn) {
    const int open = 1 + turn % 8;
    int word = 0;
    if (rank != 0) MPI_Recv(&word, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < open; ++i) post(&all[i], MPI_COMM_WORLD, turn + i);
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank + 1 < size) MPI_Send(&word, 1, MPI_INT, rank + 1, 0, MPI_COMM_WORLD);
    for (int i = 0; i < open; ++i) {
      MPI_Wait(&all[i].request, MPI_STATUS_IGNORE);
      ok &= arrived(&all[i], MPI_COMM_WORLD, turn + i);
    }
  }
  for (int i = 0; i < MAX_OPEN; ++i) discard(&all[i]);
  report("ahead", ok);
}

/* Rank 0 suddenly posts far more than ever before, and only then sends what the others wait for before they post. */
static void burst(void) {
  enum { MANY = 60 };
  static struct Exchange all[MANY];
  int rank, size, word = 0, ok = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int round = 0; round < 3; ++round) {
    ok &= run(MPI_COMM_WORLD, 5, 1);
    if (rank != 0) MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < MANY; ++i) post(&all[i], MPI_COMM_WORLD, i);
    for (int r = 1; rank == 0 && r < size; ++r) MPI_Send(&word, 1, MPI_INT, r, 0, MPI_COMM_WORLD);
    for (int i = 0; i < MANY; ++i) {
      MPI_Wait(&all[i].request, MPI_STATUS_IGNORE);
      ok &= arrived(&all[i], MPI_COMM_WORLD, i);
    }
  }
  for (int i = 0; i < MANY; ++i) discard(&all[i]);
  report("burst", ok);
}

/* Posts many on a new communicator: rank 0 before the others begin, who then complete all of theirs. */
enum { MOST_HELD = 1200 };
static int held_count = 40;
static void post_typed(MPI_Comm comm);
static int posts_typed;
static MPI_Comm begin_held(struct Exchange* all) {
  int rank, size, word = 0;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  if (rank != 0) MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < held_count; ++i) post(&all[i], comm, i);
  if (posts_typed) post_typed(comm);
  for (int r = 1; rank == 0 && r < size; ++r) MPI_Send(&word, 1, MPI_INT, r, 0, MPI_COMM_WORLD);
  for (int i = 0; rank != 0 && i < held_count; ++i) MPI_Wait(&all[i].request, MPI_STATUS_IGNORE);
  return comm;
}

static void end_held(const char* what, struct Exchange* all, MPI_Comm comm) {
  int ok = 1;
  for (int i = 0; i < held_count; ++i) {
    MPI_Wait(&all[i].request, MPI_STATUS_IGNORE);
    ok &= arrived(&all[i], comm, i);
  }
  MPI_Comm_free(&comm);
  report(what, ok);
}

/* Short blocks of a datatype that is gone at once, behind those: they go natively, when all before them may start. */
enum { RANKS = 16, PART = 6, STEP = 9 };
static int typed_out[RANKS * PART * STEP], typed_in[RANKS * PART * STEP], ones[RANKS], places[RANKS];
static MPI_Request typed_request;
static void post_typed(MPI_Comm comm) {
  MPI_Datatype every, other[8];
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Type_vector(PART, 1, STEP, MPI_INT, &every);
  MPI_Type_create_resized(every, 0, sizeof(int) * PART * STEP, &other[0]);
  MPI_Type_free(&every);
  every = other[0];
  MPI_Type_commit(&every);
  for (int i = 0; i < size; ++i) ones[i] = 1, places[i] = i;
  for (int i = 0; i < size * PART * STEP; ++i) typed_out[i] = value_of(rank, i / (PART * STEP), i % (PART * STEP), 1);
  memset(typed_in, 0, sizeof(typed_in));
  MPI_Ialltoallv(typed_out, ones, places, every, typed_in, ones, places, every, comm, &typed_request);
  MPI_Type_free(&every);
  for (int i = 0; i < 8; ++i) MPI_Type_vector(2, 1, 2 + i, MPI_INT, &other[i]), MPI_Type_commit(&other[i]);
  for (int i = 0; i < 8; ++i) MPI_Type_free(&other[i]);
}

static void typed(void) {
  static struct Exchange all[MOST_HELD];
  int rank, size, ok = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  posts_typed = 1;
  MPI_Comm comm = begin_held(all);
  MPI_Wait(&typed_request, MPI_STATUS_IGNORE);
  for (int i = 0; i < size * PART * STEP; ++i) {
    const int part = i % (PART * STEP);
    ok &= typed_in[i] == (part % STEP == 0 ? value_of(i / (PART * STEP), rank, part, 1) : 0);
  }
  end_held("behind those that are held", all, comm);
  report("a datatype that is gone", ok);
}

/* Rank 0 suddenly posts far more than ever before, completes none, and blocks in another call until the others have. */
static void held(void) {
  static struct Exchange all[MOST_HELD];
  int rank, size, word = 0;
  MPI_Comm comm, other, made;
  MPI_Win win;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);

  comm = begin_held(all);
  if (rank != 0) MPI_Send(&word, 1, MPI_INT, 0, 1, other);
  for (int r = 1; rank == 0 && r < size; ++r) MPI_Recv(&word, 1, MPI_INT, r, 1, other, MPI_STATUS_IGNORE);
  end_held("held in MPI_Recv", all, comm);

  comm = begin_held(all);
  MPI_Comm_split(other, 0, rank, &made);
  end_held("held in MPI_Comm_split", all, comm);
  MPI_Comm_free(&made);

  MPI_Win_create(&word, sizeof(word), 1, MPI_INFO_NULL, other, &win);
  MPI_Win_fence(0, win);
  comm = begin_held(all);
  MPI_Win_fence(0, win);
  end_held("held in MPI_Win_fence", all, comm);
  MPI_Win_free(&win);

  for (int i = 0; i < held_count; ++i) discard(&all[i]);
  MPI_Comm_free(&other);
}

static void named(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, "on the host");
  report("named", run(comm, 200, 1));
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  int provided;
  const char* mode = argc > 1 ? argv[1] : "";
  const int threaded = strcmp(mode, "threads") == 0;
  MPI_Init_thread(&argc, &argv, threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, NULL, &blocked);
  if (sigismember(&blocked, SIGUSR1)) report("the program's signals", 0);
  if (strcmp(mode, "steady") == 0) steady(argc > 2 ? atoi(argv[2]) : 100);
  if (strcmp(mode, "preferences") == 0) preferences();
  if (strcmp(mode, "freed") == 0) freed();
  if (strcmp(mode, "orders") == 0) orders();
  if (strcmp(mode, "threads") == 0) threads();
  if (strcmp(mode, "ahead") == 0) ahead();
  if (strcmp(mode, "burst") == 0) burst();
  if (strcmp(mode, "held") == 0) held();
  if (strcmp(mode, "full") == 0) {
    count = 16;
    held_count = MOST_HELD;
    held();
  }
  if (strcmp(mode, "named") == 0) named();
  if (strcmp(mode, "typed") == 0) typed();
  return finish();
}
