/* SPDX-License-Identifier: BSD-3-Clause
 * The conformance program: every collective with every kind of argument, one line per case: its name and a hash of all
 * ranks' receive buffers, gaps and guard bytes included. Run natively and under Offpath the lines must be the same.
 * Each rank also compares its buffers with what this program itself expects (WRONG), so a case that both sides get
 * wrong is seen too. Errors that MPI returns are printed in MPI's words (FAILED), never as wrong data. Reductions take values whose result is exact in any order.
 *
 * A Case is described (case_describe), filled, started, completed, and checked, possibly several times. */
#ifndef OFFPATH_TESTS_CONFORMANCE_H
#define OFFPATH_TESTS_CONFORMANCE_H

#include "../mpi_errors.h"

#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { kMaxBlocks = 64, kMaxRanges = 6, kMaxBatch = 16, kNameBytes = 128 };

/* ---- random.c: reproducible numbers, the same on all ranks ------------------------------------------------------ */

uint64_t mix(uint64_t value);
typedef struct Random {
  uint64_t state;
} Random;
uint64_t random_next(Random* random);
int random_below(Random* random, int bound); /* 0 .. bound - 1; bound > 0 */

/* ---- types.c: datatypes together with what they mean, written down by hand -------------------------------------- */

typedef struct Range {
  MPI_Aint offset, bytes;
} Range;

typedef struct Type {
  const char* name;
  MPI_Datatype handle;
  int items;              /* types of one family with as many items match */
  MPI_Aint bytes, extent; /* data bytes of an element; distance of two elements */
  int ranges_count;
  Range ranges[kMaxRanges]; /* where an element's data bytes lie, in order */
  int paddings_count;
  Range paddings[2]; /* inside the ranges, and of no meaning (reductions) */
} Type;

typedef struct Family {
  Type types[12];
  int count;
} Family;

typedef struct TypePair { /* what is sent as `send` arrives as `recv` */
  const Family* family;
  const Type *send, *recv;
} TypePair;

void types_create(void);
void types_free(void);
int type_pairs_count(void);
TypePair type_pair(int index);
int least_common_multiple(int a, int b);

/* ---- elements.c: what reductions work on, and the reference they are compared with ------------------------------ */

typedef struct Reduction {
  Type type;
  const char* op_name;
  MPI_Op op;
  int kind, operator; /* elements.c knows what they mean */
} Reduction;

void reductions_create(void);
void reductions_free(void);
int reductions_count(void);
const Reduction* reduction_at(int index);
/* Writes elements start .. start + count of the combination of ranks first .. last, in that order. */
void reduction_values(const Reduction* reduction, uint64_t seed, int first, int last, int start, int count, void* out);

/* ---- communicators.c -------------------------------------------------------------------------------------------- */

typedef struct Comm {
  const char* name;
  MPI_Comm handle; /* MPI_COMM_NULL on ranks that are not in it */
  int rank, size;
  bool topology, cart;
  int sources_count, destinations_count;
  int sources[kMaxBlocks], destinations[kMaxBlocks];
} Comm;

void communicators_create(void);
void communicators_free(void);
int communicators_count(bool topology);
const Comm* communicator_at(bool topology, int index);
Comm comm_duplicate(void); /* of the world; freed by the caller */

/* ---- side.c: the memory on one side of a call ------------------------------------------------------------------- */

typedef struct Data { /* movement: from, to, nth block between the two. Reductions: ranks first .. last, element start
                       */
  bool any;
  int a, b, c;
} Data;

typedef struct Block {
  const Type* type;
  int count;
  MPI_Aint offset;
  Data before, after; /* what the block holds; after: none means as before */
  bool undefined;     /* MPI leaves the contents after the call open */
} Block;

typedef struct Side {
  int blocks_count;
  Block blocks[kMaxBlocks];
  unsigned char *memory, *expected;
  unsigned char* base; /* for MPI: what offsets count from */
  size_t bytes;
  int counts[kMaxBlocks], displacements[kMaxBlocks]; /* for MPI, which may read them until the operation is done */
  MPI_Aint addresses[kMaxBlocks];
  MPI_Datatype types[kMaxBlocks];
} Side;

enum Placing { kPlaceUniform, kPlaceVarying, kPlaceTyped };
struct Case;
Block* side_add(Side* side, const Type* type, int count, Data before, Data after);
void side_place(Side* side, enum Placing placing); /* then the offsets and the arrays for MPI are valid */
void side_allocate(Side* side);
void side_fill(Side* side, const struct Case* a_case);
bool side_check(Side* side, const char* name, uint64_t* hash); /* false: not what was expected, and says so */
void side_free(Side* side);

/* ---- case.c, movement.c, reduction.c ---------------------------------------------------------------------------- */

#define OPERATIONS(X)                           \
  X(Barrier, barrier)                           \
  X(Bcast, bcast)                               \
  X(Gather, gather)                             \
  X(Gatherv, gatherv)                           \
  X(Scatter, scatter)                           \
  X(Scatterv, scatterv)                         \
  X(Allgather, allgather)                       \
  X(Allgatherv, allgatherv)                     \
  X(Alltoall, alltoall)                         \
  X(Alltoallv, alltoallv)                       \
  X(Alltoallw, alltoallw)                       \
  X(Neighbor_allgather, neighbor_allgather)     \
  X(Neighbor_allgatherv, neighbor_allgatherv)   \
  X(Neighbor_alltoall, neighbor_alltoall)       \
  X(Neighbor_alltoallv, neighbor_alltoallv)     \
  X(Neighbor_alltoallw, neighbor_alltoallw)     \
  X(Reduce, reduce)                             \
  X(Allreduce, allreduce)                       \
  X(Reduce_scatter, reduce_scatter)             \
  X(Reduce_scatter_block, reduce_scatter_block) \
  X(Scan, scan)                                 \
  X(Exscan, exscan)

enum Operation {
#define X(Name, name) k##Name,
  OPERATIONS(X)
#undef X
      kOperationsCount
};
static inline bool is_neighbor(enum Operation op) { return op >= kNeighbor_allgather && op <= kNeighbor_alltoallw; }
static inline bool is_reduction(enum Operation op) { return op >= kReduce; }
static inline bool is_typed(enum Operation op) { return op == kAlltoallw || op == kNeighbor_alltoallw; }
static inline bool is_rooted(enum Operation op) { return (op >= kBcast && op <= kScatterv) || op == kReduce; }
static inline bool may_be_in_place(enum Operation op) { return (op >= kGather && op <= kAlltoallw) || op >= kReduce; }

enum Form { kNonblocking, kPersistent, kBlocking };

/* How the requests are completed. */
enum Style {
  kWait,
  kWaitReversed,
  kTest,
  kWaitall,
  kWaitany,
  kWaitsome,
  kTestall,
  kTestany,
  kTestsome,
  kGetStatus,
  kOtherThread,
  kStylesCount
};

typedef struct Case {
  /* chosen */
  enum Operation op;
  enum Form form;
  const Comm* comm;
  TypePair pair;              /* movement */
  const Reduction* reduction; /* reductions */
  int units;                  /* movement: smallest amounts that both types can express; reductions: elements */
  int root;
  bool in_place;
  uint64_t seed;
  /* derived */
  char name[kNameBytes];
  Side send, recv;
  MPI_Request request;
  int status; /* of the MPI call, or of its completion */
} Case;

void case_describe(Case* a_case); /* names it, lays it out and allocates; on every rank */
void case_fill(Case* a_case, uint64_t seed);
void case_call(Case* a_case);                  /* persistent: makes the request */
bool case_check(Case* a_case, uint64_t* hash); /* nothing where MPI has returned an error */
void case_free(Case* a_case);

void case_data(const Case* a_case, const Block* block, Data data, unsigned char* packed);

MPI_Aint case_unit_bytes(const Case* a_case); /* data bytes of a unit, at most */
void movement_describe(Case* a_case);
MPI_Aint movement_unit_bytes(const Case* a_case);
void movement_data(const Case* a_case, const Block* block, Data data, unsigned char* packed);
void reduction_describe(Case* a_case);
int call_operation(Case* a_case);

/* ---- skips.c: the libraries' own faults -------------------------------------------------------------------------- */

const char* case_skip_reason(const Case* a_case); /* NULL: it is run. Does not depend on the rank */
bool repeats_are_reversed(const Case* a_case);    /* of several blocks between two ranks the first meets the last */
enum Style style_for(enum Form form, enum Style style);
bool starts_may_differ(void); /* ranks start persistent requests in orders of their own */

/* ---- report.c ---------------------------------------------------------------------------------------------------- */

typedef struct Report {
  const char* match; /* only cases whose name contains this; NULL: all */
  struct Line* lines;
  int count, capacity;
} Report;

/* `status`: what MPI returned. An error is printed in place of the hash, as what it is. */
void report_add(Report* report, const char* name, int status, uint64_t hash, bool right);
/* Rank 0 prints all lines so far; collective over the world. Returns how many failed or were wrong on any rank. */
int report_flush(Report* report);

/* ---- batch.c ----------------------------------------------------------------------------------------------------- */

/* Describes, runs at once, checks and frees the cases. Ranks post to different communicators in different orders;
 * persistent requests are started in an order of each rank's own, `rounds` times. */
void batch_run(Case* cases, int count, enum Style style, int rounds, Report* report);

/* ---- the modes; each returns how many cases failed or were wrong ------------------------------------------------------------
 */

int matrix_run(enum Form form, int every, uint64_t seed, const char* match);
int random_run(enum Form form, uint64_t seed, int steps, const char* match);
int threads_run(int threads_count, uint64_t seed);
int huge_run(void);

#endif
