/* SPDX-License-Identifier: BSD-3-Clause
 * What MPI returns, in words. An error that a test program did not expect is said as what it is, not as wrong data. */
#ifndef OFFPATH_TESTS_MPI_ERRORS_H
#define OFFPATH_TESTS_MPI_ERRORS_H

#include <mpi.h>
#include <stdio.h>

static inline int class_of(int code) {
  int found = MPI_SUCCESS;
  MPI_Error_class(code, &found);
  return found;
}

/* Until the next call. */
static inline const char* class_name(int code) {
#define NAMED(name) \
  { name, #name }
  static const struct {
    int value;
    const char* name;
  } kClasses[] = {
      NAMED(MPI_SUCCESS),          NAMED(MPI_ERR_BUFFER),    NAMED(MPI_ERR_COUNT),     NAMED(MPI_ERR_TYPE),
      NAMED(MPI_ERR_TAG),          NAMED(MPI_ERR_COMM),      NAMED(MPI_ERR_RANK),      NAMED(MPI_ERR_REQUEST),
      NAMED(MPI_ERR_ROOT),         NAMED(MPI_ERR_GROUP),     NAMED(MPI_ERR_OP),        NAMED(MPI_ERR_ARG),
      NAMED(MPI_ERR_UNKNOWN),      NAMED(MPI_ERR_TRUNCATE),  NAMED(MPI_ERR_OTHER),     NAMED(MPI_ERR_INTERN),
      NAMED(MPI_ERR_PENDING),      NAMED(MPI_ERR_IN_STATUS), NAMED(MPI_ERR_NO_MEM),    NAMED(MPI_ERR_WIN),
      NAMED(MPI_ERR_LOCKTYPE),     NAMED(MPI_ERR_ASSERT),    NAMED(MPI_ERR_SIZE),      NAMED(MPI_ERR_DISP),
      NAMED(MPI_ERR_RMA_CONFLICT), NAMED(MPI_ERR_RMA_SYNC),  NAMED(MPI_ERR_RMA_RANGE), NAMED(MPI_ERR_RMA_ATTACH)};
#undef NAMED
  static char number[24];
  const int found = class_of(code);
  for (size_t i = 0; i < sizeof(kClasses) / sizeof(kClasses[0]); ++i)
    if (kClasses[i].value == found) return kClasses[i].name;
  snprintf(number, sizeof(number), "class %d", found);
  return found > MPI_ERR_LASTCODE ? "a class of its own" : number;
}

/* "MPI_ERR_OTHER: service lost", with the library's or Offpath's own text, in one line. Until the next call. */
static inline const char* error_words(int code) {
  static char words[40 + MPI_MAX_ERROR_STRING];
  int length = snprintf(words, sizeof(words), "%s: ", class_name(code)), more = 0;
  MPI_Error_string(code, words + length, &more);
  for (char* at = words; *at != 0; ++at)
    if (*at == '\n') *at = ' ';
  return words;
}

/* Whether that is what a call returned, of this class; else says what it was. */
static inline int ends_with(int code, int wanted) {
  int rank;
  if (class_of(code) == wanted) return 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  fprintf(stderr, "rank %d: %s, not %s\n", rank, error_words(code), class_name(wanted));
  return 0;
}

#endif
