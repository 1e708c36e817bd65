/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A parent that waits inside fork() until its child has copied memory that both see. For handlers of pthread_atfork.
 */
#ifndef OFFPATH_WATCH_GATE_H
#define OFFPATH_WATCH_GATE_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct offpath_gate {
  int ends[2]; /* of a pipe; -1: none */
} offpath_gate_t;

void offpath_gate_open(offpath_gate_t* gate); /* before the fork */
void offpath_gate_await(
    offpath_gate_t* gate); /* in the parent; where there is no child, or it is stopped, not for long */
void offpath_gate_enter(offpath_gate_t* gate); /* in the child, before it copies */
void offpath_gate_pass(offpath_gate_t* gate);  /* in the child, when it has */

#ifdef __cplusplus
}
#endif
#endif
