/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the preloaded library (frontends/mpi/native/waits.cpp) tells this one of the program's waits inside MPI. They find each other by
 * name, offpath_frontend_tell_of_waits, so that neither needs the other; another form of it wants another name.
 */
#ifndef OFFPATH_CLIENT_TOLD_H
#define OFFPATH_CLIENT_TOLD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a thread of the program does. Times are of CLOCK_MONOTONIC. */
typedef enum offpath_told {
  OFFPATH_TOLD_BLOCKS,       /* from begin_ns on */
  OFFPATH_TOLD_GOES_ON,      /* at end_ns */
  OFFPATH_TOLD_POLLS,        /* from begin_ns to end_ns: little but questions whether something has happened, in vain */
  OFFPATH_TOLD_POLLS_NO_MORE /* as far as it is known */
} offpath_told_t;
typedef void offpath_wait_told_t(offpath_told_t what, uint64_t begin_ns, uint64_t end_ns);

#ifdef __cplusplus
}
#endif
#endif
