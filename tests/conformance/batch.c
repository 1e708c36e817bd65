/* SPDX-License-Identifier: BSD-3-Clause
 * Several operations at once: orders of posting and starting, and all the ways to see requests complete. */
#include "conformance.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct Requests {
  MPI_Request* requests;
  int count;
  int codes[kMaxBatch]; /* what MPI has said of each, the first time that it was an error */
  bool failed;
} Requests;

static void note(Requests* all, int index, int code) {
  if (code == MPI_SUCCESS) return;
  all->failed = true;
  if (index >= 0 && index < all->count && all->codes[index] == MPI_SUCCESS) all->codes[index] = code;
}

/* Of a call that is about several requests, of which it may say each one's own error: all of them where `indices` is
 * NULL. */
static void note_each(Requests* all, const int* indices, int count, int code, const MPI_Status* statuses) {
  if (code == MPI_SUCCESS) return;
  all->failed = true;
  const bool told = statuses != NULL && class_of(code) == MPI_ERR_IN_STATUS;
  for (int i = 0; i < count; ++i) {
    const int own = told ? statuses[i].MPI_ERROR : code;
    if (class_of(own) != MPI_ERR_PENDING) note(all, indices == NULL ? i : indices[i], own);
  }
}

static void wait_each(Requests* all, bool reversed) {
  for (int i = 0; i < all->count; ++i) {
    MPI_Status status;
    const int at = reversed ? all->count - 1 - i : i;
    note(all, at, MPI_Wait(&all->requests[at], reversed ? MPI_STATUS_IGNORE : &status));
  }
}

static void test_each(Requests* all, bool ask_first) {
  for (int i = 0; i < all->count; ++i) {
    int done = 0, code = MPI_SUCCESS;
    while (ask_first && !done && code == MPI_SUCCESS)
      code = MPI_Request_get_status(all->requests[i], &done, MPI_STATUS_IGNORE);
    for (done = 0; !done && code == MPI_SUCCESS;) code = MPI_Test(&all->requests[i], &done, MPI_STATUS_IGNORE);
    note(all, i, code);
  }
}

static void one_at_a_time(Requests* all, bool wait) {
  MPI_Status status;
  for (int index = 0; index != MPI_UNDEFINED && !all->failed;) {
    int done = 0, code = MPI_SUCCESS;
    if (wait) code = MPI_Waitany(all->count, all->requests, &index, &status);
    while (!wait && !done && code == MPI_SUCCESS) code = MPI_Testany(all->count, all->requests, &index, &done, &status);
    note(all, index, code);
  }
}

static void some_at_a_time(Requests* all, bool wait) {
  int indices[kMaxBatch], done = 0;
  while (done != MPI_UNDEFINED && !all->failed) {
    const int code = wait ? MPI_Waitsome(all->count, all->requests, &done, indices, MPI_STATUSES_IGNORE)
                          : MPI_Testsome(all->count, all->requests, &done, indices, MPI_STATUSES_IGNORE);
    note_each(all, indices, done, code, NULL);
  }
}

static void* wait_in_thread(void* argument) {
  Requests* all = argument;
  note_each(all, NULL, all->count, MPI_Waitall(all->count, all->requests, MPI_STATUSES_IGNORE), NULL);
  return NULL;
}

static void complete(Requests* all, enum Style style) {
  MPI_Status statuses[kMaxBatch];
  pthread_t thread;
  int done = 0, code = MPI_SUCCESS;
  switch (style) {
    case kWait:
    case kWaitReversed:
      wait_each(all, style == kWaitReversed);
      break;
    case kTest:
    case kGetStatus:
      test_each(all, style == kGetStatus);
      break;
    case kTestall:
      while (!done && code == MPI_SUCCESS) code = MPI_Testall(all->count, all->requests, &done, statuses);
      note_each(all, NULL, all->count, code, statuses);
      break;
    case kWaitany:
    case kTestany:
      one_at_a_time(all, style == kWaitany);
      break;
    case kWaitsome:
    case kTestsome:
      some_at_a_time(all, style == kWaitsome);
      break;
    case kOtherThread:
      if (pthread_create(&thread, NULL, wait_in_thread, all) == 0) pthread_join(thread, NULL);
      break;
    default:
      note_each(all, NULL, all->count, MPI_Waitall(all->count, all->requests, statuses), statuses);
  }
  if (all->failed) wait_each(all, false); /* an error may have left others under way */
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

static void start_persistent(Case* cases, int count, int round, Requests* all, Case** order) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int first = round + (starts_may_differ() ? rank : 0);
  int active = 0;
  for (int i = 0; i < count; ++i) {
    Case* one = &cases[(first + i) % count];
    if (one->request == MPI_REQUEST_NULL) continue;
    order[active] = one;
    all->requests[active++] = one->request;
  }
  all->count = active;
  if (round % 2 == 0) {
    note_each(all, NULL, active, MPI_Startall(active, all->requests), NULL);
  } else {
    for (int i = 0; i < active; ++i) note(all, i, MPI_Start(&all->requests[i]));
  }
}

static void run_round(Case* cases, int count, enum Style style, int round) {
  const enum Form form = cases[0].form;
  MPI_Request requests[kMaxBatch];
  Requests all = {.requests = requests};
  Case* order[kMaxBatch];
  for (int i = 0; i < count; ++i) {
    case_fill(&cases[i], mix(cases[i].seed + (uint64_t)round));
    if (cases[i].request != MPI_REQUEST_NULL) cases[i].status = MPI_SUCCESS; /* persistent, and made without an error */
  }
  if (form == kPersistent) {
    for (int i = 0; i < count && round == 0; ++i) case_call(&cases[i]);
    start_persistent(cases, count, round, &all, order);
    complete(&all, style_for(form, style));
  } else if (form == kNonblocking) {
    all.count = order_of_posting(cases, count, order);
    for (int i = 0; i < count; ++i) case_call(order[i]);
    for (int i = 0; i < count; ++i) requests[i] = order[i]->request;
    complete(&all, style);
    for (int i = 0; i < count; ++i) order[i]->request = requests[i];
  } else {
    for (int i = 0; i < count; ++i) case_call(&cases[i]);
  }
  for (int i = 0; i < all.count; ++i)
    if (order[i]->status == MPI_SUCCESS) order[i]->status = all.codes[i];
}

void batch_run(Case* cases, int count, enum Style style, int rounds, Report* report) {
  for (int i = 0; i < count; ++i) {
    case_describe(&cases[i]);
    const bool wanted = report->match == NULL || strstr(cases[i].name, report->match) != NULL;
    const char* reason = case_skip_reason(&cases[i]);
    if (wanted && reason == NULL) continue;
    char line[kNameBytes];
    snprintf(line, sizeof(line), "%.60s skipped: %s", cases[i].name, reason);
    if (wanted) report_add(report, line, MPI_SUCCESS, 0, true);
    case_free(&cases[i]);
    cases[i--] = cases[--count];
  }
  for (int round = 0; round < rounds && count > 0; ++round) {
    run_round(cases, count, style, round);
    for (int i = 0; i < count; ++i) {
      uint64_t hash;
      bool right = case_check(&cases[i], &hash);
      if (cases[i].form == kNonblocking && cases[i].status == MPI_SUCCESS && cases[i].request != MPI_REQUEST_NULL) {
        fprintf(stderr, "%s: the request is not null after completion\n", cases[i].name);
        right = false;
      }
      report_add(report, cases[i].name, cases[i].status, hash, right);
    }
  }
  for (int i = 0; i < count; ++i) case_free(&cases[i]);
}
