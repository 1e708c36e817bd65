/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where MPI libraries say that they have found nothing to do: Open MPI calls sched_yield, MPICH finds no event in
 * ucp_worker_progress. Rounds of that keep everybody else from the processor, first the service that is waited for
 * (docs/design/0032-waiting.md). So a preloaded library exports both, and the thread may rest there. Calls of anybody
 * but the MPI library are passed on as they are.
 *
 * Threads: any. Nothing blocks but `rest`; errno is kept. */
#ifndef OFFPATH_FRONTENDS_IDLE_CALLS_H
#define OFFPATH_FRONTENDS_IDLE_CALLS_H

#ifdef __cplusplus
extern "C" {
#endif

/* 1: it has rested, or need not; 0: do as without us. */
typedef int offpath_rest_t(void);

/* From now on `rest` is asked; NULL: nobody is. */
void offpath_rest_in_idle_calls(offpath_rest_t* rest);

#ifdef __cplusplus
}
#endif
#endif
