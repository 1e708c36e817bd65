/* SPDX-License-Identifier: BSD-3-Clause
 * One line per case, from all ranks' hashes. Point to point only: what is tested does not carry its own results. */
#include "conformance.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kErrorBytes = 200 };

typedef struct Line {
  char name[kNameBytes];
  char error[kErrorBytes]; /* empty: none */
  uint64_t hash, right;
} Line;

static void describe_error(int code, char* out) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(out, kErrorBytes, "on rank %d: %.170s", rank, error_words(code));
}

void report_add(Report* report, const char* name, int status, uint64_t hash, bool right) {
  if (report->count == report->capacity) {
    report->capacity = report->capacity == 0 ? 64 : 2 * report->capacity;
    report->lines = realloc(report->lines, (size_t)report->capacity * sizeof(Line));
    if (report->lines == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  }
  Line* line = &report->lines[report->count++];
  snprintf(line->name, sizeof(line->name), "%s", name);
  line->hash = hash;
  line->right = right || status != MPI_SUCCESS; /* of what has failed nothing is known */
  line->error[0] = 0;
  if (status != MPI_SUCCESS) describe_error(status, line->error);
}

static int print_line(const Line* line) {
  const char* wrong = line->right ? "" : " WRONG";
  if (line->error[0] != 0) {
    printf("%s FAILED %s%s\n", line->name, line->error, wrong);
  } else {
    printf("%s %016" PRIx64 "%s\n", line->name, line->hash, wrong);
  }
  return line->error[0] != 0 || !line->right;
}

int report_flush(Report* report) {
  enum { kTag = 4711 };
  int rank, size, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int bytes = report->count * (int)sizeof(Line);
  if (rank != 0) {
    MPI_Send(report->lines, bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
  } else if (bytes > 0) {
    Line* other = malloc((size_t)bytes);
    if (other == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
    for (int from = 1; from < size; ++from) {
      MPI_Recv(other, bytes, MPI_BYTE, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int i = 0; i < report->count; ++i) {
        report->lines[i].hash = mix(report->lines[i].hash) ^ other[i].hash;
        report->lines[i].right &= other[i].right;
        if (report->lines[i].error[0] == 0) memcpy(report->lines[i].error, other[i].error, kErrorBytes);
      }
    }
    for (int i = 0; i < report->count; ++i) wrong += print_line(&report->lines[i]);
    fflush(stdout);
    free(other);
  } else {
    for (int from = 1; from < size; ++from) MPI_Recv(NULL, 0, MPI_BYTE, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  free(report->lines);
  *report = (Report){.match = report->match};
  return wrong;
}
