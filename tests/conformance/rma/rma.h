/* SPDX-License-Identifier: BSD-3-Clause
 * Random programs of MPI's one-sided calls whose outcome MPI defines, against a sequential model of all windows.
 *
 * Every rank makes the same program from the seed and runs its own part; it also carries out everybody's operations, in
 * the order they were made, on a model. The outcome does not depend on the order in which they really happen, because
 * in each episode a region of a window has a role: written by one origin at a time, or only read, or updated by all
 * with one commutative operator. Results, windows (gaps too) and origins' buffers must be what the model says. One line
 * for each episode, with a hash over all ranks: a run under Offpath prints the lines of a native one. */
#ifndef OFFPATH_TESTS_CONFORMANCE_RMA_H
#define OFFPATH_TESTS_CONFORMANCE_RMA_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { kMaxRanks = 8, kWindows = 4, kTypes = 8, kPositions = 64, kMaxCount = 24, kMaxElementBytes = 8 };

/* ---- numbers.c: reproducible, the same on all ranks -------------------------------------------------------------- */

typedef struct Random {
  uint64_t state;
} Random;
uint64_t mix(uint64_t value);
uint64_t random_next(Random* random);
int random_below(Random* random, int bound); /* 0 .. bound - 1 */
uint64_t hash_bytes(uint64_t hash, const void* data, size_t bytes);

/* ---- elements.c: the predefined types, one for each region of a window, and the operators on them ---------------- */

enum Operator { kSum, kMin, kMax, kBand, kBor, kBxor, kMinloc, kMaxloc, kReplace, kNoOp, kOperators };

typedef struct Element {
  const char* name;
  MPI_Datatype handle;
  int bytes;
  bool integer, pair;
} Element;

const Element* element_at(int region);
const char* operator_name(enum Operator operator);
MPI_Op operator_handle(enum Operator operator);
bool operator_fits(enum Operator operator, const Element* element);
/* A small whole number, so that sums are exact in any order. */
void element_value(const Element* element, uint64_t seed, void* value);
/* target = target operator origin */
void element_combine(const Element* element, enum Operator operator, void * target, const void* origin);

/* ---- layouts.c: where the elements of an operation lie, and a datatype that says so ------------------------------ */

typedef struct Layout {
  int count;                   /* positions used */
  unsigned char at[kMaxCount]; /* in the order of the data; below kPositions */
  MPI_Datatype type;           /* MPI_DATATYPE_NULL until layout_commit */
  int type_count;              /* what MPI is told beside the type */
  enum { kContiguous, kVector, kIndexed, kSpread } kind;
} Layout;

Layout layout_random(Random* random, int count);
/* grain: elements at each position. */
void layout_commit(Layout* layout, const Element* element, int grain);
void layout_free(Layout* layout);

/* ---- windows.c ----------------------------------------------------------------------------------------------------
 */

typedef struct Window {
  const char* name;
  MPI_Comm comm;
  MPI_Win handle;
  int rank, size; /* in comm; rank -1: not in it, and then the handles are null */
  int grain;      /* elements at each of a region's positions */
  bool dynamic;
  unsigned char* memory;
  MPI_Aint bases[kMaxRanks]; /* what displacements count from; 0 but for dynamic windows */
  int units[kMaxRanks];      /* displacement units */
  unsigned char* models[kMaxRanks];
} Window;

extern const char* const window_names[kWindows];
extern Window windows[kWindows];
void windows_create(uint64_t seed);
void windows_free(void);
size_t region_bytes(const Window* window);
size_t window_bytes(const Window* window);
unsigned char* model_position(const Window* window, int rank, int region, int position);
/* Inside a lock of the own window. Stores new values into the whole region, in the window and in the model. */
void window_store(Window* window, int rank, int region, uint64_t seed);
/* Compares the own window with the model, inside a lock. */
bool window_check(const Window* window, int episode, uint64_t* hash);

/* ---- operations.c --------------------------------------------------------------------------------------------------
 */

enum Call { kPut, kGet, kAccumulate, kGetAccumulate, kFetchAndOp, kCompareAndSwap, kCalls };

typedef struct Operation {
  enum Call call;
  int window, origin, target, region;
  enum Operator operator;
  bool request;   /* the form with a request */
  bool unchecked; /* what it fetches depends on the order of others */
  uint64_t seed;
  Layout from, to, into; /* origin, target, result */
  /* at the origin only */
  unsigned char *origin_memory, *origin_before, *result, *expected, compare[kMaxElementBytes];
  MPI_Request handle;
} Operation;

/* Carries it out on the model; at the origin makes its buffers and what they must hold afterwards. */
void operation_prepare(Operation* operation);
void operation_start(Operation* operation);
/* Once its results are there. */
bool operation_check(const Operation* operation, int episode, int index, uint64_t* hash);
void operation_free(Operation* operation);

/* ---- episodes.c, contention.c --------------------------------------------------------------------------------------
 */

/* What the random program may use: bits by epoch and by window; layouts other than contiguous; forms with requests;
 * what is atomic. */
typedef struct Scope {
  unsigned epochs, windows;
  bool derived, requests, atomics;
} Scope;
extern Scope scope;
extern const char* const epoch_names[];
enum Epoch { kFence, kPscw, kLockAll, kLock, kEpochs };

/* Epochs of one or several windows at once with all their operations. False: something was wrong on this rank. */
bool episode_run(int number, Random* random, char* name, size_t name_bytes, uint64_t* hash);

/* All ranks at one counter: no value is lost or seen twice. */
typedef bool Contention(uint64_t* hash);
Contention contend_fetch_and_op, contend_get_accumulate, contend_compare_and_swap, contend_lock;

#endif
