/* SPDX-License-Identifier: BSD-3-Clause
 * Messages with bytes of their own. */
#ifndef OFFPATH_TESTS_MESSAGES_H
#define OFFPATH_TESTS_MESSAGES_H

#include "world.h"

static inline void fill(unsigned char* data, long bytes, int seed) {
  for (long i = 0; i < bytes; ++i) data[i] = (unsigned char)(i * 13 + i / 251 + seed * 29 + 1);
}

static inline int is_filled(const unsigned char* data, long bytes, int seed) {
  for (long i = 0; i < bytes; ++i)
    if (data[i] != (unsigned char)(i * 13 + i / 251 + seed * 29 + 1)) return 0;
  return 1;
}

static inline int says(const MPI_Status* status, int source, int tag, int bytes) {
  int count = -1;
  MPI_Get_count(status, MPI_BYTE, &count);
  return status->MPI_SOURCE == source && status->MPI_TAG == tag && count == bytes;
}

#endif
