/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "watch/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000 }; /* for a child that is stopped before it has its copy */

static void close_end(offpath_gate_t* gate, int end) {
  if (gate->ends[end] >= 0) close(gate->ends[end]);
  gate->ends[end] = -1;
}

void offpath_gate_open(offpath_gate_t* gate) {
  if (pipe2(gate->ends, O_CLOEXEC) != 0) gate->ends[0] = gate->ends[1] = -1;
}

/* A byte, or the end of a child that never was. */
void offpath_gate_await(offpath_gate_t* gate) {
  close_end(gate, 1);
  if (gate->ends[0] >= 0) {
    struct pollfd wait = {gate->ends[0], POLLIN, 0};
    while (poll(&wait, 1, PATIENCE_MS) < 0 && errno == EINTR) {
    }
  }
  close_end(gate, 0);
}

void offpath_gate_enter(offpath_gate_t* gate) { close_end(gate, 0); }

void offpath_gate_pass(offpath_gate_t* gate) {
  const char done = 1;
  if (gate->ends[1] >= 0 && write(gate->ends[1], &done, 1) < 0) close_end(gate, 1);
  close_end(gate, 1);
}
