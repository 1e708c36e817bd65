/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Offpath C API: hand communication to the service that runs next to the program.
 *
 * Objects
 *   session  the attachment of this process to its node's service (offpathd). States: attached -> lost (the
 *            service died; terminal) -> detached. One per process is enough; more are allowed.
 *   team     an ordered group of sessions that communicate. Local object: the caller makes sure that all members
 *            create it with the same id and the same addresses (a front end uses its own MPI for that).
 *   op       one operation of this member of a team. States: in progress -> done | failed (both terminal).
 *
 * Threads    Functions on different sessions may run at the same time. Functions on one session, its teams and its
 *            operations are thread safe too (one short lock); an op must not be freed while another thread uses it.
 * Death      If the service dies, operations it had begun fail with OFFPATH_ERR_SERVICE_LOST, all others with
 *            OFFPATH_ERR_NOT_STARTED; user memory is never touched again. If a peer's service dies, the operations
 *            of its teams fail the same way (OFFPATH_ERR_PEER_LOST / OFFPATH_ERR_NOT_STARTED); if a peer's process
 *            dies, those that still need it (OFFPATH_ERR_PEER_LOST).
 * Guest      No function aborts, exits, throws, prints, installs a signal handler or changes errno.
 * Fork       A forked child must not use the parent's session; every call there returns OFFPATH_ERR_STATE.
 * Units      Byte counts end in _bytes, times in _ns.
 */
#ifndef OFFPATH_OFFPATH_H
#define OFFPATH_OFFPATH_H

#include <offpath/task.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define OFFPATH_API_VERSION 1

/* 0: done. > 0: not an error. < 0: error. */
typedef enum offpath_status {
#define OFFPATH_STATUS(NAME, number, text, about) OFFPATH_##NAME = number,
#include <offpath/words/statuses.def>
} offpath_status_t;

/* Static text for a status; never NULL. Any thread, never blocks. */
const char* offpath_status_string(offpath_status_t status);

/* Text of a failed set-up call, in caller-owned storage: "problem (why it matters). What to do". */
typedef struct offpath_error {
  offpath_status_t status;
  char text[252];
} offpath_error_t;

typedef struct offpath_session offpath_session_t;
typedef struct offpath_team offpath_team_t;
typedef struct offpath_op offpath_op_t;

/* ---- session ------------------------------------------------------------------------------------------------- */

#define OFFPATH_TOKEN_BYTES 32
#define OFFPATH_TEAM_ID_BYTES 16
#define OFFPATH_ADDRESS_MAX_BYTES 1024

/* No team of this session has members on other nodes: no network is opened for it. */
#define OFFPATH_ATTACH_NODE_ONLY 1

typedef struct offpath_attach_params {
  uint32_t struct_bytes;                  /* sizeof(offpath_attach_params_t) */
  uint32_t flags;                         /* 0 or OFFPATH_ATTACH_NODE_ONLY */
  uint8_t job_token[OFFPATH_TOKEN_BYTES]; /* secret shared by all processes of the job, from a good random source;
                                             also selects the service: one per node, user and token */
  const char* service_cores;              /* where workers may run if this call starts the service, as a list of
                                             operating-system core numbers ("2,3" or "4-7"); NULL: OFFPATH_SERVICE_CORES,
                                             else those that offpath run takes: no rank here is bound to them */
  uint32_t node_sessions_count;           /* sessions that this node will have: they share the service's address space.
                                             0: not known */
  uint32_t reserved;                      /* 0 */
} offpath_attach_params_t;

/* Attaches to this node's service for the job; starts it when there is none.
 * Returns   OFFPATH_OK · OFFPATH_ERR_ARGUMENT · OFFPATH_ERR_NO_SERVICE · OFFPATH_ERR_NO_MEMORY ·
 *           OFFPATH_ERR_PERMISSION (the service runs but cannot read this process's memory)
 * Ownership the session is freed by offpath_session_detach; params and error stay the caller's. error may be NULL.
 * Blocking  until the service answers, at most OFFPATH_SERVICE_START_TIMEOUT_MS (10 s). */
offpath_status_t offpath_session_attach(const offpath_attach_params_t* params, offpath_session_t** session,
                                        offpath_error_t* error);

/* Ends the attachment, teams and operations included; NULL is allowed. Operations in progress are abandoned: their
 * peers fail. An operation that is done here may still be under way at peers, and need this service: detach when theirs are
 * done, too (a barrier). The last session of a job on a node ends the service.
 * Blocking  until the service has let go of this process's memory; one that does not answer for
 *           OFFPATH_SERVICE_SILENCE_MS (30 s) is ended. */
void offpath_session_detach(offpath_session_t* session);

/* Writes the opaque address that other members need for offpath_team_create.
 * Params    address: out, capacity bytes; address_bytes: out, the length written (<= OFFPATH_ADDRESS_MAX_BYTES).
 * Returns   OFFPATH_OK · OFFPATH_ERR_ARGUMENT (capacity too small) */
offpath_status_t offpath_session_address(offpath_session_t* session, void* address, size_t capacity,
                                         size_t* address_bytes);

/* 1 while the service is known to live, 0 after it was lost. Checks the connection; never blocks; ~0.3 us. Here and in
 * all that waits: a service that gives no sign of life for OFFPATH_SERVICE_SILENCE_MS is ended, and so lost. */
int offpath_session_alive(offpath_session_t* session);

/* 1 while operations wait in this process because the service has no room for them. They move on by themselves when others end,
 * by a thread of the library's; where the system refuses one, with the tests and waits of any. Never blocks (one short lock). */
int offpath_session_holds_back(offpath_session_t* session);

/* 1 while operations of this session are under way, or wait for room: who waits for anything else on the service's cores does
 * well to sleep. Never blocks; a load, or else one lock that it does not wait for. */
int offpath_session_busy(offpath_session_t* session);

/* 1 once the service has begun an operation for any process of the job on this node: from then on who waits for anything on
 * the service's cores does well to sleep. Never blocks; a load. */
int offpath_session_used(offpath_session_t* session);

/* 1 where the service works in the memory of offpath_memory_allocate itself, 0 where it is on another machine: then what
 * vector programs work on crosses a link. The same as long as the session lives; a load. */
int offpath_session_shares_memory(offpath_session_t* session);

/* Number of operations of this session that finished so far (wraps); the loss of the service counts, too. Pair with
 * offpath_session_sleep:
 *   seen = events(s); if nothing I wait for is done: sleep(s, seen, bound). Never blocks; a load. */
uint32_t offpath_session_events(offpath_session_t* session);

/* Sleeps until the event count differs from `seen`, the service is lost, or timeout_ns passed (bounded to 1 s).
 * Returns   OFFPATH_OK (count differs) · OFFPATH_IN_PROGRESS (time passed) · OFFPATH_ERR_SERVICE_LOST */
offpath_status_t offpath_session_sleep(offpath_session_t* session, uint32_t seen, uint64_t timeout_ns);

/* Those about memory, from in_place_bytes on, are filled in only where struct_bytes includes all of them. */
typedef struct offpath_counters {
  uint32_t struct_bytes; /* in: sizeof(offpath_session_counters_t) */
#define OFFPATH_COUNTER(type, name, line, metric, about) type name;
#include <offpath/words/counters.def>
} offpath_session_counters_t;

/* A buffer of the program that lies in the shared memory because it was moved there (OFFPATH_MAPPED). */
typedef struct offpath_moved {
  void* address;
  uint64_t bytes;
} offpath_moved_t;

/* Writes the longest ones that are known to lie there, the longest first; at most `capacity`. Returns how many. */
uint32_t offpath_session_moved(offpath_session_t* session, offpath_moved_t* moved, uint32_t capacity);

/* Fills *counters. struct_bytes may be that of the struct up to silence_ms. Never blocks. Returns OFFPATH_OK · OFFPATH_ERR_ARGUMENT (NULL or unknown struct_bytes). */
offpath_status_t offpath_session_counters(offpath_session_t* session, offpath_session_counters_t* counters);

/* An estimate: nanoseconds by which links were free sooner because blocks of this process left compressed, with what
 * compressing has held them up. Negative: that took longer than it saved. Never blocks. */
int64_t offpath_session_saved_ns(offpath_session_t* session);

/* For how long the service gave no sign of life to this process because it was ready to run and got no processor: it is not ended for
 * that. 0 unless that has lasted for about OFFPATH_SERVICE_SILENCE_MS. Never blocks; a load. */
uint64_t offpath_session_starved_ns(offpath_session_t* session);

/* ---- team ---------------------------------------------------------------------------------------------------- */

typedef struct offpath_team_params {
  uint32_t struct_bytes;
  uint32_t rank;                     /* this member, < size */
  uint32_t size;                     /* members */
  uint32_t address_stride_bytes;     /* distance between two members' addresses */
  uint8_t id[OFFPATH_TEAM_ID_BYTES]; /* same on all members, random: it also is the right to talk to the team */
  const void* addresses;             /* size x stride bytes, from offpath_session_address of each member, rank order */
  const char* compress;              /* what this member sends to other nodes in it: as OFFPATH_COMPRESS, of at most 63
                                        bytes. NULL, or what the service does not know: as OFFPATH_COMPRESS says.
                                        Members may differ: who sends decides */
} offpath_team_params_t;

/* Creates this member's end of a team. No communication; the peers may not have created theirs yet.
 * Returns   OFFPATH_OK · OFFPATH_ERR_ARGUMENT (malformed address, rank >= size, size 0) · OFFPATH_ERR_NO_MEMORY ·
 *           OFFPATH_ERR_SERVICE_LOST
 * Ownership copies everything; freed by offpath_team_destroy. Blocking never. */
offpath_status_t offpath_team_create(offpath_session_t* session, const offpath_team_params_t* params,
                                     offpath_team_t** team, offpath_error_t* error);

/* Where members are served: members of one worker have the same address, which is there once. */
typedef struct offpath_directory {
  uint32_t struct_bytes; /* sizeof(offpath_directory_t) */
  uint32_t count;        /* addresses */
  uint32_t stride_bytes; /* distance between two of them */
  uint32_t reserved;
  const void* addresses;     /* count x stride bytes, from offpath_session_address */
  const uint32_t* number_of; /* by member: which of them is its */
} offpath_directory_t;

/* The same as offpath_team_create for a team of many members: addresses are those of the directory, not those in *params. */
offpath_status_t offpath_team_create_numbered(offpath_session_t* session, const offpath_team_params_t* params,
                                              const offpath_directory_t* directory, offpath_team_t** team,
                                              offpath_error_t* error);

/* Lets go of the team; NULL is allowed. Operations in progress go on; the memory goes with the last of them. */
void offpath_team_destroy(offpath_team_t* team);

/* Number of nodes (services) the members live on. */
uint32_t offpath_team_nodes(const offpath_team_t* team);

/* 1 if own service or a member's service/process was lost: every further operation fails with
 * OFFPATH_ERR_NOT_STARTED or a worse status. Never blocks; a load (own service: see offpath_session_alive). */
int offpath_team_broken(const offpath_team_t* team);

typedef enum offpath_loss {
#define OFFPATH_LOSS(NAME, number, about) OFFPATH_LOSS_##NAME = number,
#include <offpath/words/losses.def>
} offpath_loss_t;

/* Marks in lost[0..size) how each member is known to be lost, as an offpath_loss_t. */
void offpath_team_lost(const offpath_team_t* team, uint8_t* lost);

/* One more than the number of the last operation of this member on this team that the service has begun; 0: none.
 * They are begun in the order of posting. Exact once the service is lost: operation number k (from 0, skipped ones
 * count) was begun iff it was posted and k < started. */
uint64_t offpath_team_started(const offpath_team_t* team);

/* This member has no part in the next `count` operations of the team: their numbers pass, and nothing goes to the
 * service. Only exchanges may be skipped, and only where no other member names a block from or to this one.
 * Blocking never; no call into the system. Has no effect in a forked child. */
void offpath_team_skip(offpath_team_t* team, uint64_t count);

/* What this member posts on the team and on its windows from now on begins when those operations are done: tasks, collectives of any
 * team, one-sided ones. They are of the same session, posted before and not freed yet; finished ones are allowed. Other members are not
 * asked: to them this one is late. If one of them fails, the next operation posted here fails with OFFPATH_ERR_DEPENDENCE, on other members
 * with what they need of it, too.
 * Returns   OFFPATH_OK · OFFPATH_ERR_ARGUMENT (more than OFFPATH_TASK_AFTER_MAX) · OFFPATH_ERR_STATE · OFFPATH_ERR_NO_MEMORY ·
 *           OFFPATH_ERR_NOT_STARTED. Never blocks. */
offpath_status_t offpath_team_after(offpath_team_t* team, offpath_op_t* const* after, uint32_t after_count);

/* ---- operations ---------------------------------------------------------------------------------------------- */

/* All members post the same operations on a team in the same order, or skip them (offpath_team_skip). Buffers belong to
 * the operation until it is done. No copy of user data is made here and nothing blocks: about a microsecond.
 * Common returns of the posting calls:
 *   OFFPATH_OK · OFFPATH_ERR_ARGUMENT · OFFPATH_ERR_NO_MEMORY (nothing was posted) · OFFPATH_ERR_NOT_STARTED (own
 *   service is lost or the team broken; nothing was posted). The op is freed by offpath_op_free. */

typedef struct offpath_range {
  int64_t offset_bytes; /* from the element's address */
  uint64_t bytes;
} offpath_range_t;

/* Bytes that lie in ranges: elements of size_bytes data bytes, one extent_bytes after the other; the data bytes of one
 * element are its ranges, in order. Ranges may leave gaps; they may overlap on the sending side only. */
typedef struct offpath_layout {
  uint64_t size_bytes; /* > 0, sum over the ranges, below 64 TiB */
  int64_t extent_bytes;
  const offpath_range_t* ranges;
  uint32_t ranges_count;
} offpath_layout_t;

/* A block of the caller's memory, and whom it is for or from. */
typedef struct offpath_block {
  uint32_t peer;       /* exchange: the other member, may be this one. Elsewhere 0 */
  uint32_t tag;        /* exchange: tells blocks between the same two members apart; a send block meets the receive
                          block of the same tag, so no two of one side share both. Below UINT32_MAX; elsewhere 0 */
  const void* address; /* of the first element; NULL only without bytes, or where a layout's offsets are addresses */
  uint64_t bytes;      /* data bytes, below 64 TiB; the last element need not be whole */
  uint32_t layout;     /* 0: contiguous; k: layouts[k - 1] */
} offpath_block_t;

typedef enum offpath_collective_kind {
#define OFFPATH_COLLECTIVE_KIND(NAME, number, text, about) OFFPATH_##NAME = number,
#include <offpath/words/collective_kinds.def>
} offpath_collective_kind_t;
/* Reductions: blocks contiguous. All operators commute; in which order and bracketing members are combined depends on
 * team, algorithm, root and size alone, so results are the same run to run and, where all get one, on all members. The
 * receive block may be the send block (for REDUCE_SCATTER: may begin there). */

/* How; all members name the same. DEFAULT lets the library choose by kind, size and nodes. What a kind does not know
 * counts as DEFAULT. */
typedef enum offpath_algorithm {
#define OFFPATH_ALGORITHM(NAME, number, text, about) OFFPATH_ALGORITHM_##NAME = number,
#include <offpath/words/algorithms.def>
} offpath_algorithm_t;

typedef enum offpath_operator {
#define OFFPATH_OPERATOR(NAME, number, text, about) OFFPATH_OP_##NAME = number,
#include <offpath/words/operators.def>
} offpath_operator_t;

/* Element types by representation, in the layout of the C compiler. */
typedef enum offpath_element {
#define OFFPATH_ELEMENT(NAME, number, made, about) OFFPATH_ELEMENT_##NAME = number,
#include <offpath/words/elements.def>
} offpath_element_t;

/* When an operation ends whose part at this member is done. The same on all members of the team. Who may have to do it
 * again after a service is lost wants to know that nobody needs its send blocks any more. What had arrived when a service was
 * lost ends with OFFPATH_OK, and offpath_team_broken says that others may not have theirs. */
typedef enum offpath_ends {
  OFFPATH_ENDS_ALONE = 0,
  OFFPATH_ENDS_TOGETHER = 1, /* when the receive blocks of all members are complete; all of them post it */
  OFFPATH_ENDS_BY_PAIRS = 2  /* when those of all members that get a block of this one are */
} offpath_ends_t;

typedef struct offpath_collective_params {
  uint32_t struct_bytes; /* sizeof(offpath_collective_t) */
  offpath_collective_kind_t kind;
  offpath_algorithm_t algorithm;
  uint32_t root;             /* bcast, reduce */
  offpath_operator_t op;     /* reductions */
  offpath_element_t element; /* reductions; elsewhere what all send blocks are made of, if that is F32, F64, C32 or C64.
                                Only lossy compression asks for it */
  const offpath_block_t* send;
  const offpath_block_t* recv;
  uint32_t send_count;
  uint32_t recv_count;
  const uint64_t* counts_bytes; /* reduce_scatter: size entries, same on all members */
  const offpath_layout_t* layouts;
  uint32_t layouts_count;
  offpath_ends_t ends;
} offpath_collective_t;

/* Posts one operation. All descriptions are copied before the call returns; the memory the blocks name belongs to the
 * operation until it is done: send blocks may be read meanwhile, receive blocks not touched.
 * Returns   the common ones: OFFPATH_ERR_ARGUMENT for what the kind does not allow, OFFPATH_ERR_NO_MEMORY if the
 *           description does not fit into the session segment at all (64 MiB for all teams and operations; one that
 *           only finds it full waits for its turn) · OFFPATH_ERR_TRUNCATED (more is sent to this member itself than it
 *           takes). An operator must be defined on the element type, and a block a multiple of its size. */
offpath_status_t offpath_collective(offpath_team_t* team, const offpath_collective_t* collective, offpath_op_t** op);

/* Two forms of OFFPATH_EXCHANGE that programs want often. */

#define OFFPATH_IN_PLACE ((const void*)(intptr_t)-1) /* as send buffer: data to send lies in the receive buffer */

/* Every member sends bytes_per_peer bytes to every member (own block included).
 * send and recv: size x bytes_per_peer bytes each; they must not overlap unless send is OFFPATH_IN_PLACE. */
offpath_status_t offpath_alltoall(offpath_team_t* team, const void* send, void* recv, uint64_t bytes_per_peer,
                                  offpath_op_t** op);

/* Member i sends send_bytes[j] bytes from send + send_displs_bytes[j] to member j. Arrays of `size` entries, copied
 * before the call returns; displacements may be negative. With OFFPATH_IN_PLACE the send arrays are ignored (may be
 * NULL) and the receive arrays describe both directions. A peer may send less than recv_bytes, never more. */
offpath_status_t offpath_alltoallv(offpath_team_t* team, const void* send, const uint64_t* send_bytes,
                                   const int64_t* send_displs_bytes, void* recv, const uint64_t* recv_bytes,
                                   const int64_t* recv_displs_bytes, offpath_op_t** op);

/* Returns   OFFPATH_OK · OFFPATH_IN_PROGRESS · the status the operation failed with. Never blocks; a load.
 * Checks for a lost service only every 1024th call; offpath_session_sleep finds it at once. */
offpath_status_t offpath_op_test(offpath_op_t* op);

/* As offpath_op_test, and does work that only pays while the caller has nothing else to do (copies the own
 * blocks when the service left them, see OFFPATH_SERVICE_SHARE). Call it when about to wait. */
offpath_status_t offpath_op_help(offpath_op_t* op);

/* Helps, then sleeps until the operation is done or timeout_ns passed (UINT64_MAX: no limit).
 * Returns   as offpath_op_test */
offpath_status_t offpath_op_wait(offpath_op_t* op, uint64_t timeout_ns);

/* Tells who neither tests nor waits that an operation has ended: told(context, status) is called once, by a thread of this library, or
 * in this call if it has ended already. status: as of offpath_op_wait, or OFFPATH_ERR_STATE if the session is detached first. told()
 * does not throw, does not block for long, and does not detach the session; it may post and free operations, this one included.
 * Returns   OFFPATH_OK · OFFPATH_ERR_ARGUMENT (NULL) · OFFPATH_ERR_STATE · OFFPATH_ERR_NO_MEMORY (no thread): it is not called
 * Ownership the op may be freed at once; it is told of all the same. Never blocks. */
typedef void (*offpath_op_told_t)(void* context, offpath_status_t status);
offpath_status_t offpath_op_notify(offpath_op_t* op, offpath_op_told_t told, void* context);

/* The same for programs with a loop of events: a descriptor that can be read (poll, select, epoll) once the operation has ended.
 * Returns   OFFPATH_OK · OFFPATH_ERR_ARGUMENT (NULL) · OFFPATH_ERR_STATE · OFFPATH_ERR_NO_MEMORY (no thread, no descriptor)
 * Ownership the descriptor is the caller's, who closes it at any time; it does not read from it, nor write to it. The op may be freed
 *           at once. Never blocks. */
offpath_status_t offpath_op_fd(offpath_op_t* op, int* descriptor);

/* When things happened to an operation, CLOCK_MONOTONIC in ns; 0: it did not happen. */
typedef struct offpath_times {
  uint32_t struct_bytes;  /* in: sizeof(offpath_op_times_t) */
  uint32_t last_peer;     /* the member whose block was the last to come or to be taken; one-sided: the target */
  uint64_t posted_ns;     /* handed to the service */
  uint64_t started_ns;    /* begun by the service */
  uint64_t first_byte_ns; /* came for it, or left its node; 0 of short one-sided ones: they go inside a request */
  uint64_t done_ns;       /* known to the service */
} offpath_op_times_t;

/* Whether collectives, programs and one-sided operations posted from now on are timed; off at first. The service reads
 * the clock three times for each that is. */
void offpath_session_time_operations(offpath_session_t* session, int on);

/* The times of a finished operation. Never blocks.
 * Returns   OFFPATH_OK · OFFPATH_ERR_ARGUMENT (unknown struct_bytes) · OFFPATH_ERR_STATE (not finished, not timed, not
 *           ended by the service, or times that cannot be) */
offpath_status_t offpath_op_times(offpath_op_t* op, offpath_op_times_t* times);

/* For those who watch the service: the program has begun to wait at begin_ns (end_ns 0), or has waited from begin_ns to
 * end_ns, CLOCK_MONOTONIC. offpath_op_wait does it by itself; in a session with functions the preloaded library does it for waits
 * inside MPI. Any thread; of threads that wait at a time the last counts as long as it does. Never blocks; two stores. */
void offpath_session_note_wait(offpath_session_t* session, uint64_t begin_ns, uint64_t end_ns);

/* What an unfinished operation waits for, as one line for a person:
 * "allreduce #12: 3 steps and 1 block to give left; waits for rank 2, 5".
 * Ownership text is the caller's, capacity bytes, always terminated. */
void offpath_op_describe(offpath_op_t* op, char* text, size_t capacity);

/* Frees a finished operation; an unfinished one is freed when it finishes. NULL is allowed. */
void offpath_op_free(offpath_op_t* op);

/* ---- memory shared with the service --------------------------------------------------------------------------- */

/* Memory of this process that the service maps too and works on in place. It comes zeroed, at page boundaries, and goes
 * with the session at the latest; a forked child shares it with its parent.
 * Returns   OFFPATH_OK · OFFPATH_ERR_ARGUMENT (0 bytes) · OFFPATH_ERR_NO_MEMORY (more than the system, or
 *           OFFPATH_SHARED_MEMORY_BYTES, has left) · OFFPATH_ERR_STATE
 * Blocking  while the system finds the pages. */
offpath_status_t offpath_memory_allocate(offpath_session_t* session, uint64_t bytes, void** address);

/* Gives back what offpath_memory_allocate gave and no operation uses; NULL is allowed. */
void offpath_memory_free(offpath_session_t* session, void* address);

/* The same for a program that asks for memory by an interface of its own (MPI_Alloc_mem): it behaves as memory of malloc.
 * Its pages come when they are touched. It stays when the session goes. A child of fork() has copies; after three forks no
 * more is lent. alignment: a power of two; pages begin at multiples of 4096 anyway. free() and realloc() of the C library,
 * which are wrong for it, leave it as it is (realloc() may copy from it).
 * Returns   as offpath_memory_allocate; OFFPATH_ERR_NO_MEMORY also where there is no room for more mappings or more is lent
 *           than 4096 times; OFFPATH_ERR_STATE also with OFFPATH_MAPPED=off and after the service was lost */
offpath_status_t offpath_memory_lend(offpath_session_t* session, uint64_t bytes, uint64_t alignment, void** address);

/* Takes back what offpath_memory_lend has lent, in any session of this process, living or gone. 1: done; 0: it was not
 * lent. Any thread. */
int offpath_memory_take_back(void* address);

/* The file that such memory lies in, so that other processes of this user may map it, too (MAP_SHARED, whole pages from
 * offset_bytes on), by /proc or a passed descriptor. The descriptor stays the session's.
 * Returns   OFFPATH_OK · OFFPATH_ERR_ARGUMENT (no memory of offpath_memory_allocate begins there) · OFFPATH_ERR_STATE
 */
offpath_status_t offpath_memory_file(offpath_session_t* session, const void* address, int* descriptor,
                                     uint64_t* offset_bytes);

/* Memory of the program that no session of the process moves into its shared memory (OFFPATH_MAPPED) from now on: somebody else has
 * it registered with a device, or writes it at any time. Tell before that happens. Any thread; never blocks for long. */
void offpath_memory_keep(offpath_session_t* session, const void* base, uint64_t bytes);

/* Ends one offpath_memory_keep of the same memory: nobody has it registered any more. */
void offpath_memory_release(offpath_session_t* session, const void* base, uint64_t bytes);

/* ---- vector programs ------------------------------------------------------------------------------------------ */

/* A vector program is what an iterative solver does between two matrix-vector products, worked off by the service in
 * one pass over the vectors: rows of matrices are multiplied, then scalar steps `before`, then the statements, then
 * reduce_count scalars from reduce_first on are summed over the team, then scalar steps `after`.
 *
 * Scalars, vectors and matrices lie in memory of offpath_memory_allocate, aligned to 8 bytes; vectors do not overlap. A
 * service on another machine (offpath_session_shares_memory) has memory of its own for them, of that machine at most a
 * half: what a program reads comes there before it, and what it has written goes back after it.
 * Programs of one member on a team take effect in the order of posting, each seeing all of the ones before; what failed
 * fails those posted behind it and not yet begun. Sums depend on values, lengths, team and nodes alone: they are the
 * same run to run and, those over the team, on all members. */

typedef enum offpath_scalar_op {
  OFFPATH_SCALAR_COPY = 1, /* result = left */
  OFFPATH_SCALAR_ADD = 2,
  OFFPATH_SCALAR_SUBTRACT = 3,
  OFFPATH_SCALAR_MULTIPLY = 4,
  OFFPATH_SCALAR_DIVIDE = 5, /* 0 / 0 is 0: an iteration that has arrived stays where it is */
  OFFPATH_SCALAR_SQRT = 6    /* of left */
} offpath_scalar_op_t;

typedef struct offpath_scalar_step {
  offpath_scalar_op_t op;
  uint32_t result; /* indices of scalars */
  uint32_t left;
  uint32_t right;
} offpath_scalar_step_t;

typedef enum offpath_statement_kind {
  OFFPATH_UPDATE = 1, /* vector target = sum over its terms of scalar * vector; the target may be among the terms */
  OFFPATH_DOT = 2     /* scalar target = sum over the rows of the product of its two terms' vectors */
} offpath_statement_kind_t;

#define OFFPATH_UPDATE_TERMS_MAX 4

typedef struct offpath_term {
  uint32_t scalar; /* dot: not looked at */
  uint32_t vector;
} offpath_term_t;

typedef struct offpath_statement {
  offpath_statement_kind_t kind;
  uint32_t target;
  uint32_t terms_count; /* update: at most OFFPATH_UPDATE_TERMS_MAX, dot: 2 */
  const offpath_term_t* terms;
} offpath_statement_t;

/* A stretch of rows of a matrix in compressed sparse rows: vector target[first_row ...] = A * vector source. */
typedef struct offpath_matrix_rows {
  uint64_t first_row; /* of the program's rows */
  uint64_t rows;
  const int32_t* offsets; /* rows + 1; entries are counted from offsets[0] */
  const int32_t* columns; /* of the first entry on, each < columns_count */
  const double* values;
  uint64_t entries;
  uint64_t columns_count; /* length of the source vector */
  uint32_t source;
  uint32_t target;
} offpath_matrix_rows_t;

typedef struct offpath_program_params {
  uint32_t struct_bytes; /* sizeof(offpath_program_t) */
  uint32_t scalars_count;
  double* scalars;
  double* const* vectors; /* each of `rows` elements, or what a matrix needs */
  uint32_t vectors_count;
  uint32_t matrices_count;
  uint64_t rows;
  const offpath_matrix_rows_t* matrices;
  const offpath_scalar_step_t* before;
  const offpath_statement_t* statements;
  const offpath_scalar_step_t* after;
  uint32_t before_count;
  uint32_t statements_count;
  uint32_t after_count;
  uint32_t reduce_first; /* scalars; all members name as many */
  uint32_t reduce_count;
} offpath_program_t;

/* Posts a program. The description is copied before the call returns; vectors and scalars belong to it until it is
 * done. Returns   the common ones of operations: OFFPATH_ERR_ARGUMENT for missing arrays, OFFPATH_ERR_NO_MEMORY for a
 *           description that is too long. Indices that do not exist fail the operation with OFFPATH_ERR_ARGUMENT,
 *           memory that is not shared with OFFPATH_ERR_MEMORY_FAULT; on the other members it fails, too, if they need
 *           its scalars. */
offpath_status_t offpath_program(offpath_team_t* team, const offpath_program_t* program, offpath_op_t** op);

/* What crosses the link to a service on another machine, besides the scalars, which always do. Vectors are numbers of the
 * program's. What does not come has the values that programs of this session have left there; what does not go back the
 * values here that it had. */
#define OFFPATH_CROSSING_MATRICES 1 /* the program's matrices come, too: with the first that names them */

typedef struct offpath_crossing {
  uint32_t struct_bytes; /* sizeof(offpath_crossing_t) */
  uint32_t flags;        /* OFFPATH_CROSSING_MATRICES */
  const uint32_t* in;    /* vectors that come before the program */
  const uint32_t* out;   /* vectors that go back after it: those that only matrices write with these rows alone */
  uint32_t in_count;
  uint32_t out_count;
} offpath_crossing_t;

/* As offpath_program, of which vectors may stay with the service from one program to the next. Where memory is shared it
 * is the same. crossing: copied before the call returns; NULL: all that is read comes, all that is written goes back. */
offpath_status_t offpath_program_crossing(offpath_team_t* team, const offpath_program_t* program,
                                          const offpath_crossing_t* crossing, offpath_op_t** op);

/* ---- windows and one-sided operations ------------------------------------------------------------------------- */

/* A window opens memory of every member of a team to the others. One-sided operations read and write it: the origin's
 * service asks the target's service, which does it; the target's process takes no part and need not enter any call.
 *
 * Counters   Per window and member two 64-bit counters: issued, operations posted here, and completed, the largest k
 *            such that the first k of them are done. completed <= issued always. Done means remotely complete: what
 *            was put or accumulated is in the target's memory.
 * Order      Operations may take effect in any order, except that accumulates (kinds ACCUMULATE to
 *            COMPARE_AND_SWAP) of one origin to one target take effect in the order of posting, and so do its locks and
 *            unlocks.
 * Atomicity  Accumulates on a member's part of a window are atomic with each other, element by element, whoever posts
 *            them: the target's service does all of them. They are not atomic with the target's own loads and stores.
 */
typedef struct offpath_window offpath_window_t;

#define OFFPATH_WINDOW_DYNAMIC 1u /* no memory but what is attached; offsets are addresses of the target */

typedef struct offpath_window_params {
  uint32_t struct_bytes; /* sizeof(offpath_window_params_t) */
  uint32_t flags;        /* 0 or OFFPATH_WINDOW_DYNAMIC */
  uint64_t id;           /* same on all members; no other window of the team has it as long as this one lives */
  void* base;            /* this member's part; NULL if bytes is 0 */
  uint64_t bytes;
} offpath_window_params_t;

/* Opens this member's part. Before anybody uses the window the caller makes sure (a barrier) that all have done so.
 * Returns   OFFPATH_OK · OFFPATH_ERR_ARGUMENT · OFFPATH_ERR_NO_MEMORY · OFFPATH_ERR_SERVICE_LOST
 * Ownership freed by offpath_window_destroy, before its team. Blocking until the service knows it. */
offpath_status_t offpath_window_create(offpath_team_t* team, const offpath_window_params_t* params,
                                       offpath_window_t** window, offpath_error_t* error);

/* Closes this member's part; NULL is allowed. Operations of others that come later fail with OFFPATH_ERR_RANGE, own
 * ones in progress go on. Blocking until the service has let go of the memory. */
void offpath_window_destroy(offpath_window_t* window);

/* Opens and closes further memory of this member; attach fails with OFFPATH_ERR_ARGUMENT where it overlaps what is
 * attached, detach where nothing is attached at that address. Blocking as create and destroy. */
offpath_status_t offpath_window_attach(offpath_window_t* window, void* base, uint64_t bytes);
offpath_status_t offpath_window_detach(offpath_window_t* window, void* base);

typedef enum offpath_remote_kind {
#define OFFPATH_REMOTE_KIND(NAME, number, text, does, about) OFFPATH_##NAME = number,
#include <offpath/words/remote_kinds.def>
} offpath_remote_kind_t;

typedef struct offpath_remote_params {
  uint32_t struct_bytes; /* sizeof(offpath_remote_t) */
  offpath_remote_kind_t kind;
  uint32_t target;           /* member, may be this one */
  offpath_operator_t op;     /* accumulates: any but NONE; REPLACE and NO_OP included */
  offpath_element_t element; /* accumulates, compare and swap; elsewhere as of a collective */
  uint32_t target_layout;    /* 0: contiguous; k: layouts[k - 1] */
  uint64_t target_offset;    /* of the first element, in bytes from the target's base (dynamic: its address) */
  uint64_t target_bytes;     /* data bytes at the target */
  offpath_block_t send;      /* of target_bytes, COMPARE_AND_SWAP: contiguous, of twice that, PUT_SIGNAL: of 8 less
                                (peer and tag 0); where the
                                kind does not send: all 0; with NO_OP it is not looked at */
  offpath_block_t result;    /* of target_bytes; where the kind does not fetch: all 0 */
  const offpath_layout_t* layouts;
  uint32_t layouts_count;
  uint32_t flags;     /* OFFPATH_REMOTE_... */
  const void* signal; /* PUT_SIGNAL: 8 bytes, which belong to the operation as the data does; else NULL */
} offpath_remote_t;

#define OFFPATH_REMOTE_FLUSHED 1 /* there is an op for what it says in the end: who needs that flushes first */

/* The most ranges that the target's layout of one operation may have. */
#define OFFPATH_REMOTE_RANGES_MAX 128

/* Posts a one-sided operation. Contiguous send blocks of up to OFFPATH_REMOTE_INLINE_BYTES are copied and the caller's
 * again on return; other memory belongs to the operation until it is done.
 * Params    op: NULL if flush is all that is needed. Of these, and with OFFPATH_REMOTE_FLUSHED, short ones that follow
 *           others of the window which are under way may start when one of those ends, or with the next flush.
 * Returns   the common ones; an operation that is refused at the target fails with OFFPATH_ERR_RANGE. On a broken team
 *           only operations on lost members are refused (OFFPATH_ERR_NOT_STARTED): locks of the living can be given
 *           back. */
#define OFFPATH_REMOTE_INLINE_BYTES 256
offpath_status_t offpath_remote(offpath_window_t* window, const offpath_remote_t* remote, offpath_op_t** op);

/* The counters. Never block; loads. */
uint64_t offpath_window_issued(const offpath_window_t* window);
uint64_t offpath_window_completed(const offpath_window_t* window);

/* Have all operations issued before this call completed?
 * Returns   OFFPATH_IN_PROGRESS · OFFPATH_OK · the first failure since flush last returned one ·
 *           OFFPATH_ERR_SERVICE_LOST, each time, where the lost service had not completed some. Never blocks. */
offpath_status_t offpath_window_flush_test(offpath_window_t* window);
/* The same, asleep until they have or timeout_ns passed (UINT64_MAX: no limit). */
offpath_status_t offpath_window_flush(offpath_window_t* window, uint64_t timeout_ns);

/* ---- tasks ---------------------------------------------------------------------------------------------------- */

/* Functions of the program run by the service's executors, next to the program: processes that load a shared object, so
 * user code never runs in the service. offpath/task.h is for those who write the functions.
 *
 * A task is an operation of its session: it is tested, waited for, described, timed and freed as all are. It has no input
 * but its argument and its ranges, and no output but its ranges; so it may run anywhere, and again.
 *
 * Memory   Ranges in memory that the service shares (offpath_memory_allocate, offpath_memory_lend)
 *          are used in place: what the function writes is seen as it is written. Other ranges, and all where the service is on
 *          another machine, are copied before and after, and show the result only when the operation is done; then a task
 *          that fails changes nothing there but a report.
 * Order    A task begins when all operations are done that it comes after. Others run in any order and at the same time,
 *          those of higher priority first. Two tasks of a session of which one writes what the other reads or writes must be
 *          ordered, directly or by others between them, or the later one fails with OFFPATH_ERR_ARGUMENT.
 * Failure  The function's own code, an exception, a crash, an exit or its time limit: OFFPATH_ERR_TASK, and how is said by
 *          offpath_task_result and offpath_op_describe. Executors that end are replaced. If an operation that a task
 *          comes after fails, the task is not run: OFFPATH_ERR_DEPENDENCE.
 * Loss     When the service is lost, tasks go on with another one of the job, which is started if there is none, but not those that may
 *          have begun and stay home or change memory (OFFPATH_TASK_INOUT): OFFPATH_ERR_SERVICE_LOST. Three times a minute is too often.
 */
typedef struct offpath_function offpath_function_t;

/* The function is in the code for devices that an OpenMP compiler has put into `library`: between "declare target" and "end declare
 * target". Such a library may be a program, and may hold code for other processors than its own. */
#define OFFPATH_FUNCTION_TARGET 1

typedef struct offpath_function_params {
  uint32_t struct_bytes; /* sizeof(offpath_function_params_t) */
  uint32_t flags;        /* 0 or OFFPATH_FUNCTION_TARGET */
  const char* library;   /* shared object: a path with '/', or a name that the system's loader finds. With
                            OFFPATH_FUNCTION_TARGET a path; NULL: this program */
  const char* symbol;    /* of the function in it; "+HEX": so far behind the object's base (offpath/offpath.hpp) */
  const char* signature; /* what OFFPATH_TASK_FUNCTION says there; NULL: not checked */
} offpath_function_params_t;

/* Makes a function known to the session; executors are started for the first one, and one of them loads the object. Where the service is
 * on another machine the object must be there, too, built for it: docs/guide-tasks.md says where executors look.
 * Returns   OFFPATH_OK · OFFPATH_ERR_ARGUMENT (no such object or symbol, one for another processor, another signature; names
 *           longer than 4095 bytes; unknown flags) · OFFPATH_ERR_TASK (the object crashed while it was loaded) · OFFPATH_ERR_NO_SERVICE (no
 *           executor can be started) · OFFPATH_ERR_NO_MEMORY · OFFPATH_ERR_SERVICE_LOST
 * Ownership freed with the session. The same function twice is two handles. Blocking until an executor has had time to load it. */
offpath_status_t offpath_function_register(offpath_session_t* session, const offpath_function_params_t* params,
                                           offpath_function_t** function, offpath_error_t* error);

#define OFFPATH_TASK_ARGUMENT_MAX_BYTES 65536 /* what is longer is a range */
#define OFFPATH_TASK_RANGES_MAX 1024
#define OFFPATH_TASK_AFTER_MAX 1024

/* It does not move to another node (OFFPATH_TASK_BALANCE), whatever is to do here, and is begun once at most. */
#define OFFPATH_TASK_STAYS_HOME 1

typedef struct offpath_task_params {
  uint32_t struct_bytes; /* sizeof(offpath_task_params_t) */
  uint32_t flags;        /* 0 or OFFPATH_TASK_STAYS_HOME */
  offpath_function_t* function;
  const void* argument; /* copied */
  uint64_t argument_bytes;
  const offpath_task_range_t* ranges; /* belong to the task until it is done */
  offpath_op_t* const* after;         /* operations of this session, not freed yet; finished ones are allowed */
  uint32_t ranges_count;
  uint32_t after_count;
  int32_t priority; /* higher is first; then the nearer deadline, then the order of submission */
  uint32_t reserved;
  uint64_t limit_ns;    /* it is ended when it has run for so long, within some ms; 0: no limit */
  uint64_t cost_ns;     /* hint: how long it will run; 0: not known */
  uint64_t deadline_ns; /* hint: when its result is wanted, CLOCK_MONOTONIC; 0: not known */
} offpath_task_params_t;

/* Submits a task. Nothing of params is needed afterwards, but the memory of the ranges.
 * Returns   the common ones of operations: OFFPATH_ERR_ARGUMENT for an argument or counts that are too long, a range without
 *           memory or access, overlapping ranges of which one is written, an op or function of another session. */
offpath_status_t offpath_task_submit(offpath_session_t* session, const offpath_task_params_t* params,
                                     offpath_op_t** op);

/* Nobody wants the result any more. A task that has not begun ends with OFFPATH_ERR_CANCELLED; one that runs is told
 * (offpath_task_t), and ends so, too, unless it returns 0. One that runs for OFFPATH_TASK_CANCEL_MS (1000) more loses its executor. One
 * that is finished first stays. Never blocks; the op ends soon. Returns OFFPATH_OK · OFFPATH_ERR_ARGUMENT (no task) · OFFPATH_ERR_STATE */
offpath_status_t offpath_task_cancel(offpath_op_t* op);

typedef struct offpath_task_outcome {
  uint32_t struct_bytes; /* in: sizeof(offpath_task_result_t) */
  int32_t code;          /* what the function returned, if it did */
  int32_t signal;        /* that ended the executor; 0: none */
  uint32_t executor;     /* process that ran it; 0: none did, or one on another node */
  uint64_t run_ns;       /* the function's time */
  char text[256];        /* what went wrong, for a person; empty: nothing */
} offpath_task_result_t;

/* About a finished task. Never blocks.
 * Returns   OFFPATH_OK · OFFPATH_ERR_ARGUMENT (no task, unknown struct_bytes) · OFFPATH_ERR_STATE (not finished) */
offpath_status_t offpath_task_result(offpath_op_t* op, offpath_task_result_t* result);

/* ---- files ---------------------------------------------------------------------------------------------------- */

/* Transfers between memory and a file that the program has open, done by the service: operations of the session, which are tested,
 * waited for, described, timed and freed as all are, and may come after others. The service opens nothing: it is handed a descriptor,
 * which it uses as this process could. Written bytes are where those of pwrite() are: seen by everybody on this machine when the
 * operation is done, and on the disk after fsync() of any descriptor of the file.
 *
 * Order    Transfers may take effect in any order. Of two that overlap, of which one writes, the later one comes after the other.
 * Failure  What the file system refuses: OFFPATH_ERR_FILE, and offpath_file_result says why. Any part may have been done; it may be
 *          done again.
 * Loss     When the service is lost a transfer may have been done in part. It writes nothing any more: do it again by other means.
 */
typedef struct offpath_file offpath_file_t;

/* Hands a descriptor of a plain file over, opened without O_APPEND and O_DIRECT. It may be closed afterwards.
 * Returns   OFFPATH_OK · OFFPATH_ERR_ARGUMENT (no plain file) · OFFPATH_ERR_STATE (the service is on another machine) ·
 *           OFFPATH_ERR_NO_MEMORY (1024 files of a session are open, or the service has no descriptor left) · OFFPATH_ERR_SERVICE_LOST
 * Ownership freed by offpath_file_close, before the session is detached. Blocking until the service has it. */
offpath_status_t offpath_file_open(offpath_session_t* session, int descriptor, offpath_file_t** file,
                                   offpath_error_t* error);

/* NULL is allowed. Transfers in progress go on, begun or not; but for these the service has let go of the file on return. Blocking until then. */
void offpath_file_close(offpath_file_t* file);

/* Each write holds a lock (F_OFD_SETLK) on the bytes that it writes, as libraries do that read what lies around theirs and write
 * it back. Where the file system has no locks, or somebody holds one for a second, it writes without. */
#define OFFPATH_FILE_LOCKED 1

typedef struct offpath_file_params {
  uint32_t struct_bytes; /* sizeof(offpath_file_transfer_t) */
  uint32_t flags;        /* 0 or OFFPATH_FILE_LOCKED, of a write */
  offpath_block_t
      memory; /* where the bytes come from, or go (peer and tag 0); it is the operation's until that is done */
  uint64_t offset_bytes;           /* in the file: of the first element */
  uint64_t skip_bytes;             /* data bytes of the elements that come before the first byte of the transfer */
  const offpath_layout_t* layouts; /* of memory and file; ranges of a file's ascend, and lie within its extent */
  offpath_op_t* const* after;      /* operations of this session, not freed yet; finished ones are allowed */
  uint32_t layouts_count;          /* at most 2 */
  uint32_t layout;                 /* of the file; 0: contiguous; k: layouts[k - 1] */
  uint32_t after_count;            /* at most OFFPATH_TASK_AFTER_MAX */
  uint32_t reserved;               /* 0 */
} offpath_file_transfer_t;

/* Write memory to the file, and read the file into memory: as many bytes as the memory has, a read no more than the file has.
 * Returns   the common ones of operations: OFFPATH_ERR_ARGUMENT also for offsets that no file can have, or not by this process's RLIMIT_FSIZE. */
offpath_status_t offpath_file_write(offpath_file_t* file, const offpath_file_transfer_t* transfer, offpath_op_t** op);
offpath_status_t offpath_file_read(offpath_file_t* file, const offpath_file_transfer_t* transfer, offpath_op_t** op);

typedef struct offpath_file_outcome {
  uint32_t struct_bytes; /* in: sizeof(offpath_file_result_t) */
  int32_t system_error;  /* of a transfer that the file system refused: as errno has it; else 0 */
  uint64_t bytes;        /* moved: fewer than asked for where a read came to the end of the file; 0 of a failed one */
} offpath_file_result_t;

/* About a finished transfer. Never blocks.
 * Returns   OFFPATH_OK · OFFPATH_ERR_ARGUMENT (no transfer, unknown struct_bytes) · OFFPATH_ERR_STATE (not finished) */
offpath_status_t offpath_file_result(offpath_op_t* op, offpath_file_result_t* result);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
