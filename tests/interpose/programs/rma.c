/* SPDX-License-Identifier: BSD-3-Clause
 * Every one-sided call on every kind of window under every kind of synchronisation; each rank checks what it got and
 * what others left in its memory. */
#include "world.h"

enum { CELLS = 64, BIG = 40000, MANY = 200 };
enum { FENCE, LOCK, LOCK_ALL, START, EPOCHS };
enum { CREATE, ALLOCATE, DYNAMIC, FLAVORS };

static const char* const epoch_names[] = {"fence", "lock", "lock_all", "start"};
static const char* const flavor_names[] = {"create", "allocate", "dynamic"};

static int flavor, epoch;
static MPI_Win win;
static MPI_Group everybody;
static long* memory; /* CELLS for each rank, then BIG */
static MPI_Aint* bases;
static long nothing[1];

static MPI_Aint length(void) { return (MPI_Aint)sizeof(long) * (CELLS * size + BIG); }

/* Where cell `i` of `target` is: ranks count in different units. */
static MPI_Aint at(int target, int i) {
  if (flavor == DYNAMIC) return MPI_Aint_add(bases[target], (MPI_Aint)sizeof(long) * i);
  return target % 2 == 0 ? i : (MPI_Aint)sizeof(long) * i;
}

static void make_window(void) {
  const int unit = rank % 2 == 0 ? (int)sizeof(long) : 1;
  MPI_Aint base;
  memory = NULL;
  if (flavor == ALLOCATE) {
    MPI_Win_allocate(length(), unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  } else {
    memory = malloc((size_t)length());
    if (flavor == CREATE) MPI_Win_create(memory, length(), unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  }
  if (flavor == DYNAMIC) {
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_attach(win, memory, length());
    MPI_Win_attach(win, nothing, 0); /* as a rank that has no part of something */
  }
  MPI_Get_address(memory, &base);
  MPI_Allgather(&base, 1, MPI_AINT, bases, 1, MPI_AINT, MPI_COMM_WORLD);
}

static void free_window(void) {
  if (flavor == DYNAMIC) MPI_Win_detach(win, nothing), MPI_Win_detach(win, memory);
  MPI_Win_free(&win);
  if (flavor != ALLOCATE) free(memory);
}

static void set_memory(long value) {
  for (int i = 0; i < CELLS * size + BIG; ++i) memory[i] = value;
  MPI_Barrier(MPI_COMM_WORLD);
}

static void begin_epoch(void) {
  switch (epoch) {
    case FENCE:
      MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
      break;
    case LOCK:
      for (int i = 0; i < size; ++i) MPI_Win_lock(MPI_LOCK_SHARED, (rank + i) % size, 0, win);
      break;
    case LOCK_ALL:
      MPI_Win_lock_all(0, win);
      break;
    default:
      MPI_Win_post(everybody, 0, win);
      MPI_Win_start(everybody, 0, win);
  }
}

/* Afterwards everybody's operations are done everywhere. */
static void end_epoch(void) {
  int flag = 0;
  switch (epoch) {
    case FENCE:
      MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
      return;
    case LOCK:
      for (int i = 0; i < size; ++i) MPI_Win_unlock((rank + i) % size, win);
      MPI_Barrier(MPI_COMM_WORLD);
      return;
    case LOCK_ALL:
      MPI_Win_unlock_all(win);
      MPI_Barrier(MPI_COMM_WORLD);
      return;
    default:
      MPI_Win_complete(win);
      if (rank % 2 == 0) {
        MPI_Win_wait(win);
      } else {
        while (!flag) MPI_Win_test(win, &flag);
      }
  }
}

static void say(const char* call, int ok) {
  char text[100];
  snprintf(text, sizeof(text), "%s, %s: %s", flavor_names[flavor], epoch_names[epoch], call);
  report(text, ok);
}

/* Own cells are those that the memory has for this rank. */
static int mine(void) { return CELLS * rank; }

static void put_and_get(void) {
  long sent[CELLS], got[CELLS * MANY];
  set_memory(-1);
  begin_epoch();
  for (int to = 0; to < size; ++to) {
    for (int i = 0; i < CELLS; ++i) sent[i] = value_of(rank, to, i, 1);
    MPI_Put(sent, CELLS / 2, MPI_LONG, to, at(to, mine()), CELLS / 2, MPI_LONG, win);
    if (epoch == LOCK || epoch == LOCK_ALL)
      MPI_Win_flush_local(to, win);
    else {
      end_epoch();
      begin_epoch();
    }
  }
  end_epoch();
  int ok = 1;
  for (int from = 0; from < size; ++from)
    for (int i = 0; i < CELLS; ++i) ok &= memory[CELLS * from + i] == (i < CELLS / 2 ? value_of(from, rank, i, 1) : -1);
  say("put", ok);
  for (int i = 0; i < CELLS * size; ++i) memory[i] = value_of(rank, 7, i, 2);
  MPI_Barrier(MPI_COMM_WORLD);
  memset(got, 0, sizeof(got));
  begin_epoch();
  for (int from = 0; from < size; ++from)
    MPI_Get(got + CELLS * from, CELLS, MPI_LONG, from, at(from, mine()), CELLS, MPI_LONG, win);
  end_epoch();
  ok = 1;
  for (int from = 0; from < size; ++from)
    for (int i = 0; i < CELLS; ++i) ok &= got[CELLS * from + i] == value_of(from, 7, mine() + i, 2);
  say("get", ok);
}

static void long_put_and_get(void) {
  long *sent = malloc(sizeof(long) * BIG), *got = malloc(sizeof(long) * BIG);
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  set_memory(-1);
  for (int i = 0; i < BIG; ++i) sent[i] = value_of(rank, to, i, 3), got[i] = -1;
  begin_epoch();
  MPI_Put(sent, BIG, MPI_LONG, to, at(to, CELLS * size), BIG, MPI_LONG, win);
  end_epoch();
  int ok = 1;
  for (int i = 0; i < BIG; ++i) ok &= memory[CELLS * size + i] == value_of(from, rank, i, 3);
  begin_epoch();
  MPI_Get(got, BIG, MPI_LONG, to, at(to, CELLS * size), BIG, MPI_LONG, win);
  end_epoch();
  for (int i = 0; i < BIG; ++i) ok &= got[i] == sent[i];
  set_memory(1);
  begin_epoch();
  for (int i = 0; i < size; ++i)
    MPI_Accumulate(sent, BIG, MPI_LONG, i, at(i, CELLS * size), BIG, MPI_LONG, MPI_SUM, win);
  end_epoch();
  for (int i = 0; i < BIG; ++i) {
    long sum = 1;
    for (int r = 0; r < size; ++r) sum += value_of(r, (r + 1) % size, i, 3);
    ok &= memory[CELLS * size + i] == sum;
  }
  say("long ones", ok);
  free(sent);
  free(got);
}

static void accumulate(void) {
  long one[CELLS], old[CELLS];
  for (int i = 0; i < CELLS; ++i) one[i] = i + 1;
  set_memory(5);
  begin_epoch();
  for (int n = 0; n < MANY; ++n)
    for (int to = 0; to < size; ++to) MPI_Accumulate(one, 3, MPI_LONG, to, at(to, 1), 3, MPI_LONG, MPI_SUM, win);
  end_epoch();
  int ok = 1;
  for (int i = 0; i < 3; ++i) ok &= memory[1 + i] == 5 + (long)MANY * size * (i + 1);
  ok &= memory[0] == 5 && memory[4] == 5;
  say("accumulate", ok);
  /* Of one origin in order: the last one replaces. */
  set_memory(5);
  begin_epoch();
  for (long n = 0; n < MANY; ++n) {
    one[0] = n, one[1] = -n;
    for (int to = 0; to < size; ++to)
      MPI_Accumulate(one + n % 2, 1, MPI_LONG, to, at(to, mine()), 1, MPI_LONG, MPI_REPLACE, win);
    if (epoch == LOCK || epoch == LOCK_ALL)
      MPI_Win_flush_local_all(win);
    else {
      end_epoch();
      begin_epoch();
    }
  }
  end_epoch();
  ok = 1;
  for (int from = 0; from < size; ++from) ok &= memory[CELLS * from] == -(MANY - 1);
  say("replace", ok);
  set_memory(100 + rank);
  for (int i = 0; i < CELLS; ++i) one[i] = i, old[i] = -1;
  begin_epoch();
  for (int to = 0; to < size; ++to)
    MPI_Get_accumulate(one, 4, MPI_LONG, old + 4 * to, 4, MPI_LONG, to, at(to, mine()), 4, MPI_LONG, MPI_SUM, win);
  end_epoch();
  ok = 1;
  for (int to = 0; to < size; ++to)
    for (int i = 0; i < 4; ++i) ok &= old[4 * to + i] == 100 + to && memory[CELLS * to + i] == 100 + rank + i;
  MPI_Barrier(MPI_COMM_WORLD);
  begin_epoch();
  for (int to = 0; to < size; ++to)
    MPI_Get_accumulate(NULL, 0, MPI_LONG, old + 4 * to, 4, MPI_LONG, to, at(to, mine()), 4, MPI_LONG, MPI_NO_OP, win);
  end_epoch();
  for (int to = 0; to < size; ++to)
    for (int i = 0; i < 4; ++i) ok &= old[4 * to + i] == 100 + to + i;
  say("get_accumulate", ok);
}

static void single(void) {
  long tickets[MANY], one = 1, got = -1;
  set_memory(0);
  begin_epoch();
  for (int n = 0; n < MANY; ++n) MPI_Fetch_and_op(&one, &tickets[n], MPI_LONG, 0, at(0, 2), MPI_SUM, win);
  end_epoch();
  int ok = rank != 0 || memory[2] == (long)MANY * size;
  for (int n = 1; n < MANY; ++n) ok &= tickets[n] > tickets[n - 1];
  say("fetch_and_op", ok);
  /* Of all that try, one sets it. */
  const long wanted = 1000 + rank, empty = 0;
  int winners = 0, won;
  begin_epoch();
  MPI_Compare_and_swap(&wanted, &empty, &got, MPI_LONG, size - 1, at(size - 1, 5), win);
  end_epoch();
  won = got == 0;
  MPI_Allreduce(&won, &winners, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  ok = winners == 1 && (won || got >= 1000);
  if (rank == size - 1) ok &= memory[5] >= 1000 && memory[5] < 1000 + size;
  say("compare_and_swap", ok);
}

/* Requests belong to passive epochs. */
static void requests(void) {
  enum { KINDS = 4 };
  MPI_Request request[KINDS];
  long *sent = malloc(sizeof(long) * BIG), got[CELLS], old[3], three[3] = {1, 2, 3};
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  if (epoch != LOCK && epoch != LOCK_ALL) return free(sent);
  set_memory(7);
  for (int i = 0; i < BIG; ++i) sent[i] = value_of(rank, to, i, 4);
  begin_epoch();
  MPI_Rput(sent, BIG, MPI_LONG, to, at(to, CELLS * size), BIG, MPI_LONG, win, &request[0]);
  MPI_Rget(got, CELLS, MPI_LONG, to, at(to, CELLS * to), CELLS, MPI_LONG, win, &request[1]);
  MPI_Raccumulate(three, 3, MPI_LONG, to, at(to, mine()), 3, MPI_LONG, MPI_PROD, win, &request[2]);
  MPI_Rget_accumulate(three, 3, MPI_LONG, old, 3, MPI_LONG, to, at(to, mine() + 3), 3, MPI_LONG, MPI_SUM, win,
                      &request[3]);
  int ok = 1, flag = 0, index = 0;
  MPI_Status status;
  MPI_Wait(&request[1], &status);
  for (int i = 0; i < CELLS; ++i) ok &= got[i] == 7;
  while (!flag) MPI_Test(&request[3], &flag, MPI_STATUS_IGNORE);
  for (int i = 0; i < 3; ++i) ok &= old[i] == 7;
  MPI_Waitany(KINDS, request, &index, MPI_STATUS_IGNORE);
  ok &= index == 0 || index == 2;
  MPI_Waitall(KINDS, request, MPI_STATUSES_IGNORE);
  for (int i = 0; i < KINDS; ++i) ok &= request[i] == MPI_REQUEST_NULL;
  MPI_Rput(NULL, 0, MPI_LONG, MPI_PROC_NULL, 0, 0, MPI_LONG, win, &request[0]);
  MPI_Wait(&request[0], MPI_STATUS_IGNORE);
  end_epoch();
  for (int i = 0; i < BIG; ++i) ok &= memory[CELLS * size + i] == value_of(from, rank, i, 4);
  for (int i = 0; i < 3; ++i) {
    ok &= memory[CELLS * from + i] == 7 * (i + 1);
    ok &= memory[CELLS * from + 3 + i] == 7 + i + 1;
  }
  say("requests", ok);
  free(sent);
}

/* Counters behind exclusive locks, which nothing else makes atomic. */
static void exclusive(void) {
  if (epoch != LOCK) return;
  set_memory(0);
  for (int n = 0; n < 30; ++n) {
    const int to = n % size;
    long value = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
    MPI_Get(&value, 1, MPI_LONG, to, at(to, 9), 1, MPI_LONG, win);
    MPI_Win_flush(to, win);
    ++value;
    MPI_Put(&value, 1, MPI_LONG, to, at(to, 9), 1, MPI_LONG, win);
    MPI_Win_unlock(to, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  int rounds = 0;
  for (int n = 0; n < 30; ++n) rounds += n % size == rank;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
  MPI_Win_sync(win);
  const int ok = memory[9] == (long)rounds * size;
  MPI_Win_unlock(rank, win);
  say("exclusive lock", ok);
}

/* Asserts, several epochs in a row, and flushes with nothing to do. */
static void odds(void) {
  long value = rank, got = -1;
  int ok = 1;
  set_memory(rank);
  if (epoch == LOCK_ALL) {
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    for (int n = 0; n < 1000; ++n) MPI_Win_flush_all(win);
    MPI_Get(&got, 1, MPI_LONG, size - 1, at(size - 1, 0), 1, MPI_LONG, win);
    MPI_Win_flush_local(size - 1, win);
    ok &= got == size - 1;
    MPI_Win_sync(win);
    MPI_Win_unlock_all(win);
  } else if (epoch == FENCE) {
    MPI_Win_fence(0, win);
    MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT, win);
    MPI_Put(&value, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win);
    MPI_Put(&value, 0, MPI_LONG, rank, at(rank, 0), 0, MPI_LONG, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, MPI_MODE_NOCHECK, win);
    MPI_Get(&got, 1, MPI_LONG, rank, at(rank, 1), 1, MPI_LONG, win);
    MPI_Win_unlock(rank, win);
    ok &= got == rank;
  } else if (epoch == START) {
    /* Only neighbours; each exposes to the one before it. */
    MPI_Group left, right;
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Group_incl(everybody, 1, &from, &left);
    MPI_Group_incl(everybody, 1, &to, &right);
    for (int n = 0; n < 20; ++n) {
      value = 100 * n + rank;
      MPI_Win_post(left, 0, win);
      MPI_Win_start(right, 0, win);
      MPI_Put(&value, 1, MPI_LONG, to, at(to, 3), 1, MPI_LONG, win);
      MPI_Win_complete(win);
      MPI_Win_wait(win);
      ok &= memory[3] == 100 * n + from;
    }
    MPI_Group_free(&left);
    MPI_Group_free(&right);
    /* In a row that does not close, the first rank exposes to nobody, and the last one accesses nobody. */
    MPI_Group_incl(everybody, rank > 0 ? 1 : 0, &from, &left);
    MPI_Group_incl(everybody, rank < size - 1 ? 1 : 0, &to, &right);
    for (int n = 0; n < 3; ++n) {
      value = 100 * n + rank;
      MPI_Win_post(left, 0, win);
      MPI_Win_start(right, 0, win);
      if (rank < size - 1) MPI_Put(&value, 1, MPI_LONG, to, at(to, 4), 1, MPI_LONG, win);
      MPI_Win_complete(win);
      MPI_Win_wait(win);
      ok &= rank == 0 || memory[4] == 100 * n + from;
    }
    if (left != MPI_GROUP_EMPTY) MPI_Group_free(&left);
    if (right != MPI_GROUP_EMPTY) MPI_Group_free(&right);
  }
  say("odds", ok);
}

/* Two windows at a time over the same memory's halves, on communicators of another order. */
static void several(void) {
  MPI_Comm turned;
  MPI_Win wins[2];
  long cells[2][8] = {{0}};
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &turned);
  MPI_Win_create(cells[0], sizeof(cells[0]), sizeof(long), MPI_INFO_NULL, turned, &wins[0]);
  MPI_Win_create(cells[1], sizeof(cells[1]), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &wins[1]);
  MPI_Comm_free(&turned);
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  const long values[2] = {10 + rank, 20 + rank};
  MPI_Win_fence(0, wins[0]);
  MPI_Win_fence(0, wins[1]);
  MPI_Put(&values[0], 1, MPI_LONG, size - 1 - next, 3, 1, MPI_LONG, wins[0]);
  MPI_Put(&values[1], 1, MPI_LONG, next, 3, 1, MPI_LONG, wins[1]);
  MPI_Win_fence(0, wins[1]);
  MPI_Win_fence(0, wins[0]);
  report("several windows", cells[0][3] == 10 + before && cells[1][3] == 20 + before);
  MPI_Win_free(&wins[0]);
  MPI_Win_free(&wins[1]);
}

int main(int argc, char** argv) {
  enter(&argc, &argv);
  MPI_Comm_group(MPI_COMM_WORLD, &everybody);
  bases = malloc(sizeof(MPI_Aint) * (size_t)size);
  for (flavor = 0; flavor < FLAVORS; ++flavor) {
    make_window();
    for (epoch = 0; epoch < EPOCHS; ++epoch) {
      put_and_get();
      long_put_and_get();
      accumulate();
      single();
      requests();
      exclusive();
      odds();
    }
    free_window();
  }
  several();
  MPI_Group_free(&everybody);
  free(bases);
  return finish();
}
