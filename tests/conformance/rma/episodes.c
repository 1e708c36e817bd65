/* SPDX-License-Identifier: BSD-3-Clause
 * An episode: epochs on one or several windows, the operations in them, and what must be there afterwards.
 *
 * Epochs are opened in the order fence, post/start, lock_all, lock and closed in the reverse one: nobody who holds a
 * lock waits for a process that may be waiting for that lock. */
#include "rma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum Role { kPrivate, kReadOnly, kUpdated, kRoles };
enum { kMaxRounds = 3, kMaxOperations = 400, kMaxPerRegion = 3 };

const char* const epoch_names[] = {"fence", "pscw", "lock_all", "lock"};
Scope scope = {
    .epochs = (1u << kEpochs) - 1, .windows = (1u << kWindows) - 1, .derived = true, .requests = true, .atomics = true};

typedef struct Access { /* to one window in one episode, the same on all ranks */
  bool used;
  enum Epoch epoch;
  int rounds;
  bool may[kMaxRanks][kMaxRanks];       /* origin, target */
  bool exclusive[kMaxRanks][kMaxRanks]; /* locks */
} Access;

typedef struct Episode {
  int number;
  Access access[kWindows];
  int counts[kMaxRounds]; /* operations up to the end of each round */
  int operations_count;
  Operation* operations;
} Episode;

static bool allowed(unsigned bits, int which) { return (bits >> which & 1) != 0; }
static bool passive(const Access* access) { return access->epoch >= kLockAll; }
static bool takes_part(int window) { return windows[window].rank >= 0; }

/* ---- making it: the same on all ranks ---------------------------------------------------------------------------- */

static enum Operator random_operator(Random* random, const Element* element, bool commutative) {
  for (;;) {
    const enum Operator operator=(enum Operator) random_below(random, commutative ? kReplace : kNoOp);
    if (operator_fits(operator, element)) return operator;
  }
}

static Operation* add_operation(Episode* episode, Random* random, int window, int origin, int target, int region) {
  Operation* operation = &episode->operations[episode->operations_count++];
  *operation = (Operation){.window = window, .origin = origin, .target = target, .region = region};
  operation->seed = random_next(random);
  operation->request = scope.requests && passive(&episode->access[window]) && random_below(random, 3) == 0;
  return operation;
}

static void place_operation(Operation* operation, Random* random) {
  if (operation->call >= kFetchAndOp) { /* one element, where every displacement unit can point */
    operation->from = operation->into = operation->to =
        (Layout){.count = 1, .type = MPI_DATATYPE_NULL, .type_count = 1, .kind = kContiguous};
    operation->to.at[0] = (unsigned char)(8 * random_below(random, kPositions / 8));
  } else {
    const int count = 1 + random_below(random, kMaxCount);
    operation->from = layout_random(random, count);
    operation->into = layout_random(random, count);
    operation->to = layout_random(random, count);
  }
  operation_prepare(operation);
}

static enum Call random_update(Random* random) { return (enum Call)(kAccumulate + random_below(random, 3)); }

/* One origin alone: a put, a compare-and-swap, gets, or accumulates of one operator, which keep their order; a flush
 * lies between rounds. */
static void add_private(Episode* episode, Random* random, int window, int origin, int target, int region) {
  const Element* element = element_at(region);
  const enum Operator operator= random_operator(random, element, false);
  enum Call call = (enum Call)random_below(random, scope.atomics ? kCalls : kGet + 1);
  if (call == kCompareAndSwap && !element->integer) call = kPut;
  const bool alone = call == kPut || call == kCompareAndSwap, accumulates = !alone && call != kGet;
  const int count = alone ? 1 : 1 + random_below(random, kMaxPerRegion);
  for (int i = 0; i < count; ++i) {
    Operation* operation = add_operation(episode, random, window, origin, target, region);
    operation->call = accumulates ? random_update(random) : call;
    const bool reads = operation->call >= kGetAccumulate && random_below(random, 3) == 0;
    operation->operator= reads ? kNoOp : operator;
    place_operation(operation, random);
  }
}

static void add_read(Episode* episode, Random* random, int window, int origin, int target, int region) {
  Operation* operation = add_operation(episode, random, window, origin, target, region);
  operation->call =
      !scope.atomics || random_below(random, 3) > 0 ? kGet : (enum Call)(kGetAccumulate + random_below(random, 2));
  operation->operator= kNoOp;
  place_operation(operation, random);
}

static void add_update(Episode* episode, Random* random, int window, int origin, int target, int region,
                       enum Operator operator) {
  if (!scope.atomics) {
    add_read(episode, random, window, origin, target, region);
    return;
  }
  Operation* operation = add_operation(episode, random, window, origin, target, region);
  operation->call = random_update(random);
  operation->operator= operator;
  operation->unchecked = true;
  place_operation(operation, random);
}

static void add_round(Episode* episode, Random* random, int window, int round, const Random* roles) {
  const Access* access = &episode->access[window];
  const int size = windows[window].size;
  if (round >= access->rounds) return;
  Random choice = *roles; /* alike in all rounds of the episode */
  for (int target = 0; target < size; ++target)
    for (int region = 0; region < kTypes; ++region) {
      const enum Role role = (enum Role)random_below(&choice, kRoles);
      const int owner = random_below(&choice, size);
      const enum Operator operator= random_operator(&choice, element_at(region), true);
      if (random_below(random, size) > 1) continue; /* else the number of operations grows with the square */
      if (episode->operations_count + size * kMaxPerRegion > kMaxOperations) continue;
      for (int origin = 0; origin < size; ++origin) {
        if (!access->may[origin][target]) continue;
        if (role == kPrivate && origin == owner) add_private(episode, random, window, origin, target, region);
        if (role == kReadOnly) add_read(episode, random, window, origin, target, region);
        if (role == kUpdated) add_update(episode, random, window, origin, target, region, operator);
      }
    }
}

static void choose_access(Episode* episode, Random* random) {
  int chosen = random_below(random, kWindows);
  while (!allowed(scope.windows, chosen)) chosen = random_below(random, kWindows);
  bool locks = false;
  for (int i = 0; i < kWindows; ++i) {
    Access* access = &episode->access[i];
    access->used = i == chosen || (allowed(scope.windows, i) && random_below(random, 3) == 0);
    do access->epoch = (enum Epoch)random_below(random, kEpochs);
    while (!allowed(scope.epochs, (int)access->epoch));
    access->rounds = access->epoch == kPscw ? 1 : 1 + random_below(random, kMaxRounds);
    locks = locks || (access->used && access->epoch == kLock);
    for (int origin = 0; origin < windows[i].size; ++origin)
      for (int target = 0; target < windows[i].size; ++target) {
        const bool everywhere = access->epoch == kFence || access->epoch == kLockAll;
        access->may[origin][target] = everywhere || random_below(random, 3) > 0;
        access->exclusive[origin][target] = random_below(random, 2) == 0;
      }
  }
  /* A fence in the middle would wait for processes that wait for a lock. */
  for (int i = 0; i < kWindows; ++i)
    if (locks && episode->access[i].epoch == kFence) episode->access[i].rounds = 1;
}

static void make_operations(Episode* episode, Random* random) {
  Random roles[kWindows];
  for (int i = 0; i < kWindows; ++i) roles[i].state = random_next(random);
  for (int round = 0; round < kMaxRounds; ++round) {
    for (int i = 0; i < kWindows; ++i)
      if (episode->access[i].used) add_round(episode, random, i, round, &roles[i]);
    episode->counts[round] = episode->operations_count;
  }
}

/* ---- running it ---------------------------------------------------------------------------------------------------
 */

static MPI_Group partners(int window, const Access* access, bool targets) {
  int ranks[kMaxRanks], count = 0;
  const int me = windows[window].rank;
  for (int i = 0; i < windows[window].size; ++i)
    if (targets ? access->may[me][i] : access->may[i][me]) ranks[count++] = i;
  MPI_Group all, some;
  MPI_Comm_group(windows[window].comm, &all);
  MPI_Group_incl(all, count, ranks, &some);
  MPI_Group_free(&all);
  return some;
}

static void open_epoch(int number, const Access* access) {
  const Window* window = &windows[number];
  switch (access->epoch) {
    case kFence:
      MPI_Win_fence(MPI_MODE_NOPRECEDE, window->handle);
      break;
    case kPscw: {
      MPI_Group origins = partners(number, access, false), targets = partners(number, access, true);
      MPI_Win_post(origins, 0, window->handle);
      MPI_Win_start(targets, 0, window->handle);
      MPI_Group_free(&origins);
      MPI_Group_free(&targets);
      break;
    }
    case kLockAll:
      MPI_Win_lock_all(0, window->handle);
      break;
    default:
      for (int target = 0; target < window->size; ++target)
        if (access->may[window->rank][target])
          MPI_Win_lock(access->exclusive[window->rank][target] ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0,
                       window->handle);
  }
}

static void close_epoch(int number, const Access* access, Random* style) {
  const Window* window = &windows[number];
  switch (access->epoch) {
    case kFence:
      MPI_Win_fence(MPI_MODE_NOSUCCEED, window->handle);
      break;
    case kPscw:
      MPI_Win_complete(window->handle);
      if (random_below(style, 2) == 0) {
        MPI_Win_wait(window->handle);
      } else {
        for (int done = 0, arrived; !done;) {
          MPI_Win_test(window->handle, &done);
          /* Open MPI's test of a window in shared memory progresses nothing, and others may need us elsewhere. */
          MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, window->comm, &arrived, MPI_STATUS_IGNORE);
        }
      }
      break;
    case kLockAll:
      MPI_Win_unlock_all(window->handle);
      break;
    default:
      for (int target = 0; target < window->size; ++target)
        if (access->may[window->rank][target]) MPI_Win_unlock(target, window->handle);
  }
}

static bool is_mine(const Operation* operation) { return operation->origin == windows[operation->window].rank; }

static void finish_request(Operation* operation, Random* style) {
  if (random_below(style, 2) == 0) {
    MPI_Wait(&operation->handle, MPI_STATUS_IGNORE);
  } else {
    for (int done = 0; !done;) MPI_Test(&operation->handle, &done, MPI_STATUS_IGNORE);
  }
}

/* Afterwards what this rank did in the round is complete at the target too, or with a fence everybody's. */
static void end_round(int number, const Access* access, Random* style) {
  const Window* window = &windows[number];
  if (access->epoch == kFence) {
    MPI_Win_fence(0, window->handle);
  } else if (access->epoch == kLockAll) {
    if (random_below(style, 4) == 0) MPI_Win_flush_local_all(window->handle);
    MPI_Win_flush_all(window->handle);
  } else {
    for (int target = 0; target < window->size; ++target) {
      if (!access->may[window->rank][target]) continue;
      if (random_below(style, 4) == 0) MPI_Win_flush_local(target, window->handle);
      MPI_Win_flush(target, window->handle);
    }
  }
}

static void run_rounds(Episode* episode, Random* style) {
  int at = 0;
  for (int round = 0; round < kMaxRounds; ++round) {
    const int first = at;
    for (; at < episode->counts[round]; ++at) {
      Operation* operation = &episode->operations[at];
      if (!is_mine(operation)) continue;
      operation_start(operation);
      if (operation->request && random_below(style, 2) == 0) finish_request(operation, style);
    }
    for (int i = first; i < at; ++i)
      if (is_mine(&episode->operations[i])) finish_request(&episode->operations[i], style);
    for (int i = 0; i < kWindows; ++i)
      if (episode->access[i].used && takes_part(i) && round + 1 < episode->access[i].rounds)
        end_round(i, &episode->access[i], style);
  }
}

/* Somebody's window changes without any call that moves data. */
static void store_locally(Episode* episode, Random* random) {
  for (int i = 0; i < kWindows; ++i) {
    Window* window = &windows[i];
    if (!episode->access[i].used) continue;
    const int owner = random_below(random, window->size), region = random_below(random, kTypes);
    const uint64_t seed = random_next(random);
    if (window->rank == owner) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, owner, 0, window->handle);
    window_store(window, owner, region, seed);
    if (window->rank == owner) MPI_Win_unlock(owner, window->handle);
  }
}

static bool check(Episode* episode, uint64_t* hash) {
  bool good = true;
  for (int i = 0; i < episode->operations_count; ++i) {
    Operation* operation = &episode->operations[i];
    if (!is_mine(operation)) continue;
    good = operation_check(operation, episode->number, i, hash) && good;
    operation_free(operation);
  }
  for (int i = 0; i < kWindows; ++i) {
    const Window* window = &windows[i];
    if (!episode->access[i].used || !takes_part(i)) continue;
    MPI_Win_lock(MPI_LOCK_SHARED, window->rank, 0, window->handle);
    good = window_check(window, episode->number, hash) && good;
    MPI_Win_unlock(window->rank, window->handle);
  }
  return good;
}

static void describe(const Episode* episode, char* name, size_t bytes) {
  int used = snprintf(name, bytes, "episode %d, %d operations:", episode->number, episode->operations_count);
  for (int i = 0; i < kWindows; ++i)
    if (episode->access[i].used && used > 0 && (size_t)used < bytes)
      used += snprintf(name + used, bytes - (size_t)used, " %s/%s/%d", windows[i].name,
                       epoch_names[episode->access[i].epoch], episode->access[i].rounds);
}

bool episode_run(int number, Random* random, char* name, size_t name_bytes, uint64_t* hash) {
  static Operation operations[kMaxOperations];
  Episode episode = {.number = number, .operations = operations};
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  choose_access(&episode, random);
  store_locally(&episode, random);
  make_operations(&episode, random);
  describe(&episode, name, name_bytes);
  Random style = {mix(random_next(random) + (uint64_t)rank)}; /* of this rank alone: how it completes things */
  MPI_Barrier(MPI_COMM_WORLD);
  for (int epoch = 0; epoch < kEpochs; ++epoch)
    for (int i = 0; i < kWindows; ++i)
      if (episode.access[i].used && takes_part(i) && (int)episode.access[i].epoch == epoch)
        open_epoch(i, &episode.access[i]);
  run_rounds(&episode, &style);
  for (int epoch = kEpochs - 1; epoch >= 0; --epoch)
    for (int i = kWindows - 1; i >= 0; --i)
      if (episode.access[i].used && takes_part(i) && (int)episode.access[i].epoch == epoch)
        close_epoch(i, &episode.access[i], &style);
  MPI_Barrier(MPI_COMM_WORLD);
  const bool good = check(&episode, hash);
  MPI_Barrier(MPI_COMM_WORLD);
  return good;
}
