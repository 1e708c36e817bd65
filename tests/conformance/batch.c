/* SPDX-License-Identifier: BSD-3-Clause
 * Several operations at once: orders of posting and starting, and all the ways to see requests complete. */
#include "conformance.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void wait_each(MPI_Request* requests, int count, bool reversed) {
  for (int i = 0; i < count; ++i) {
    MPI_Status status;
    MPI_Wait(&requests[reversed ? count - 1 - i : i], reversed ? MPI_STATUS_IGNORE : &status);
  }
}

static void test_each(MPI_Request* requests, int count, bool ask_first) {
  for (int i = 0; i < count; ++i) {
    int done = 0;
    while (ask_first && !done) MPI_Request_get_status(requests[i], &done, MPI_STATUS_IGNORE);
    for (done = 0; !done;) MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
  }
}

static void one_at_a_time(MPI_Request* requests, int count, bool wait) {
  MPI_Status status;
  for (int index = 0; index != MPI_UNDEFINED;) {
    int done = 0;
    if (wait) MPI_Waitany(count, requests, &index, &status);
    while (!wait && !done) MPI_Testany(count, requests, &index, &done, &status);
  }
}

static void some_at_a_time(MPI_Request* requests, int count, bool wait) {
  int indices[kMaxBatch], done = 0;
  while (done != MPI_UNDEFINED) {
    if (wait) {
      MPI_Waitsome(count, requests, &done, indices, MPI_STATUSES_IGNORE);
    } else {
      MPI_Testsome(count, requests, &done, indices, MPI_STATUSES_IGNORE);
    }
  }
}

typedef struct Requests {
  MPI_Request* requests;
  int count;
} Requests;

static void* wait_in_thread(void* argument) {
  Requests* all = argument;
  MPI_Waitall(all->count, all->requests, MPI_STATUSES_IGNORE);
  return NULL;
}

static void complete(MPI_Request* requests, int count, enum Style style) {
  MPI_Status statuses[kMaxBatch];
  Requests all = {requests, count};
  pthread_t thread;
  int done = 0;
  switch (style) {
    case kWait:
    case kWaitReversed:
      wait_each(requests, count, style == kWaitReversed);
      break;
    case kTest:
    case kGetStatus:
      test_each(requests, count, style == kGetStatus);
      break;
    case kTestall:
      while (!done) MPI_Testall(count, requests, &done, statuses);
      break;
    case kWaitany:
    case kTestany:
      one_at_a_time(requests, count, style == kWaitany);
      break;
    case kWaitsome:
    case kTestsome:
      some_at_a_time(requests, count, style == kWaitsome);
      break;
    case kOtherThread:
      if (pthread_create(&thread, NULL, wait_in_thread, &all) == 0) pthread_join(thread, NULL);
      break;
    default:
      MPI_Waitall(count, requests, statuses);
  }
}

/* Cases of one communicator stay in order. Which communicator comes first differs from rank to rank. */
static int order_of_posting(const Case* cases, int count, Case** order) {
  int rank, n = 0;
  const Comm* known[kMaxBatch];
  int known_count = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < count; ++i) {
    int k = 0;
    while (k < known_count && known[k] != cases[i].comm) ++k;
    if (k == known_count) known[known_count++] = cases[i].comm;
  }
  for (int k = 0; k < known_count; ++k)
    for (int i = 0; i < count; ++i)
      if (cases[i].comm == known[(k + rank) % known_count]) order[n++] = (Case*)&cases[i];
  return n;
}

static void start_persistent(Case* cases, int count, int round, MPI_Request* requests) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int first = round + (starts_may_differ() ? rank : 0);
  int active = 0;
  for (int i = 0; i < count; ++i)
    if (cases[(first + i) % count].request != MPI_REQUEST_NULL) requests[active++] = cases[(first + i) % count].request;
  if (round % 2 == 0) {
    MPI_Startall(active, requests);
  } else {
    for (int i = 0; i < active; ++i) MPI_Start(&requests[i]);
  }
  while (active < count) requests[active++] = MPI_REQUEST_NULL;
}

static void run_round(Case* cases, int count, enum Style style, int round) {
  const enum Form form = cases[0].form;
  MPI_Request requests[kMaxBatch];
  for (int i = 0; i < count; ++i) case_fill(&cases[i], mix(cases[i].seed + (uint64_t)round));
  if (form == kPersistent) {
    for (int i = 0; i < count && round == 0; ++i) case_call(&cases[i]);
    start_persistent(cases, count, round, requests);
    complete(requests, count, style_for(form, style));
  } else if (form == kNonblocking) {
    Case* order[kMaxBatch];
    order_of_posting(cases, count, order);
    for (int i = 0; i < count; ++i) case_call(order[i]);
    for (int i = 0; i < count; ++i) requests[i] = order[i]->request;
    complete(requests, count, style);
    for (int i = 0; i < count; ++i) order[i]->request = requests[i];
  } else {
    for (int i = 0; i < count; ++i) case_call(&cases[i]);
  }
}

void batch_run(Case* cases, int count, enum Style style, int rounds, Report* report) {
  for (int i = 0; i < count; ++i) {
    case_describe(&cases[i]);
    const bool wanted = report->match == NULL || strstr(cases[i].name, report->match) != NULL;
    const char* reason = case_skip_reason(&cases[i]);
    if (wanted && reason == NULL) continue;
    char line[kNameBytes];
    snprintf(line, sizeof(line), "%.60s skipped: %s", cases[i].name, reason);
    if (wanted) report_add(report, line, 0, true);
    case_free(&cases[i]);
    cases[i--] = cases[--count];
  }
  for (int round = 0; round < rounds && count > 0; ++round) {
    run_round(cases, count, style, round);
    for (int i = 0; i < count; ++i) {
      uint64_t hash;
      bool right = case_check(&cases[i], &hash);
      if (cases[i].form == kNonblocking && cases[i].request != MPI_REQUEST_NULL) {
        fprintf(stderr, "%s: the request is not null after completion\n", cases[i].name);
        right = false;
      }
      report_add(report, cases[i].name, hash, right);
    }
  }
  for (int i = 0; i < count; ++i) case_free(&cases[i]);
}
