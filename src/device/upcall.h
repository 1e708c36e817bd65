/* SPDX-License-Identifier: BSD-3-Clause
 * Upcalls: code inside a target region calls back into its host process (MPI inside regions is built on them). C ABI,
 * both ends. A code says what is asked; `args` is a small block; inputs and outputs are spans of the region's memory.
 *
 * Executor's end: exported by the program offpath-executor, so a library loaded there just leaves them undefined.
 * Host's end: the plugin hands every upcall to the function offpath_serve_upcall, if some library in the global scope
 * of the host process defines it; otherwise the answer is OFFPATH_ERR_STATE. */
#ifndef OFFPATH_DEVICE_UPCALL_H
#define OFFPATH_DEVICE_UPCALL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OFFPATH_UPCALL_MAX_ARGS_BYTES 1024
#define OFFPATH_UPCALL_MAX_SPANS 8 /* inputs and outputs together */

typedef struct {
  void* data;
  uint64_t bytes;
} offpath_span_t;

/* ---- executor's end ------------------------------------------------------------------------------------------- */

/* Sends an upcall and returns its id, never 0. args are copied at once; inputs must not change and outputs not be read
 * until it is answered. Any thread; does not wait for the host. Returns 0 when the arguments break the limits above, or
 * there is no memory to stage spans that the host cannot see. */
uint64_t offpath_upcall_post(uint32_t code, const void* args, uint32_t args_bytes, const offpath_span_t* inputs,
                             uint32_t input_count, const offpath_span_t* outputs, uint32_t output_count);
/* 1 when answered (then *status is the answer's and the id is gone), 0 when not yet. Never blocks. */
int offpath_upcall_test(uint64_t id, int32_t* status);
/* Sleeps until answered; the id is gone afterwards. Returns the answer's status. */
int32_t offpath_upcall_wait(uint64_t id);
/* Post and wait; OFFPATH_ERR_ARGUMENT when it could not be posted. */
int32_t offpath_upcall(uint32_t code, const void* args, uint32_t args_bytes, const offpath_span_t* inputs,
                       uint32_t input_count, const offpath_span_t* outputs, uint32_t output_count);
/* Whether the host can view the heap of the region's device. */
int32_t offpath_device_shares_memory(void);

/* ---- host's end ----------------------------------------------------------------------------------------------- */

typedef struct offpath_upcall_request offpath_upcall_request_t;

struct offpath_upcall_request {
  uint32_t code;
  uint64_t channel; /* differs between devices and is never used again: a key for what belongs to one executor */
  const void* args; /* 8-byte aligned; what is in them comes from the region: check it */
  uint32_t args_bytes;
  uint32_t input_count;
  uint32_t output_count;
  const offpath_span_t* inputs;  /* host addresses, valid until answered. Segment channel: the region's own memory */
  const offpath_span_t* outputs; /* where it is in the heap, not a copy; else staged */
  /* Ends the upcall; any thread, exactly once, also after the executor died (then it only frees). */
  void (*answer)(offpath_upcall_request_t*, int32_t status);
  /* Host address of `bytes` at a device address; NULL where they are not heap or the channel has no shared memory.
   * Valid as long as the device is open. May be called until answer(). */
  void* (*view)(offpath_upcall_request_t*, uint64_t address, uint64_t bytes);
};

/* Defined by whoever serves upcalls. Called on the device's channel thread, one at a time per device: must not block;
 * answer later from another thread. */
void offpath_serve_upcall(offpath_upcall_request_t* request);
/* Optional, same place: the executor of that channel has gone; requests not answered yet must still be answered. */
void offpath_upcall_channel_lost(uint64_t channel);

#ifdef __cplusplus
}
#endif
#endif
