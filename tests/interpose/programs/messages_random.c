/* SPDX-License-Identifier: BSD-3-Clause
 * Random messages of all lengths among all ranks, sent and received by all calls, in one thread or several, each with a
 * communicator of its own. A message says whose it is: what a receive has got is checked against MPI's rules.
 * Usage: messages_random SEED ROUNDS THREADS */
#include "check.h"

#include <pthread.h>
#include <stdint.h>

enum { MOST_RANKS = 8, MOST = 24, LONGEST = 120000, TAGS = 3 };

typedef struct {
  uint32_t from, to, tag, number; /* number: of this sender's to that receiver */
  uint32_t bytes, how;
} Message;

typedef struct {
  MPI_Comm comm;
  uint64_t common, own; /* states of random numbers: the same on all ranks, and not */
  int rank, size, rounds, wrong;
  Message messages[MOST];
  int count;
  uint32_t sent[MOST_RANKS][MOST_RANKS];
  uint32_t least[MOST_RANKS]; /* by sender: the next number in this round */
  unsigned char *out[MOST], *in[MOST];
  char got[MOST];
} Worker;

static uint32_t next(uint64_t* state, uint32_t below) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 33) % below;
}

static unsigned char byte_at(const Message* m, uint32_t i) {
  return (unsigned char)(m->from * 3 + m->tag * 5 + m->number * 7 + i * 11 + i / 257);
}

static void write_message(unsigned char* data, const Message* m) {
  for (uint32_t i = 0; i < m->bytes; ++i) data[i] = byte_at(m, i);
  if (m->bytes >= sizeof(*m)) memcpy(data, m, sizeof(*m));
}

static void fail(Worker* w, const char* what, int from, int tag, int bytes) {
  if (++w->wrong < 5) fprintf(stderr, "rank %d: %s (from %d, tag %d, %d bytes)\n", w->rank, what, from, tag, bytes);
}

/* Which of this round's messages lies in `data`; short ones are told by sender and tag, in their order. */
static void accept_message(Worker* w, const unsigned char* data, const MPI_Status* status) {
  int bytes, found = -1;
  MPI_Get_count(status, MPI_BYTE, &bytes);
  for (int i = 0; i < w->count && found < 0; ++i) {
    const Message* m = &w->messages[i];
    if (m->to != (uint32_t)w->rank || w->got[i] || m->from != (uint32_t)status->MPI_SOURCE ||
        m->tag != (uint32_t)status->MPI_TAG || m->bytes != (uint32_t)bytes)
      continue;
    if (m->bytes < sizeof(*m) || memcmp(data, m, sizeof(*m)) == 0) found = i;
  }
  if (found < 0) return fail(w, "nobody has sent that", status->MPI_SOURCE, status->MPI_TAG, bytes);
  const Message* m = &w->messages[found];
  for (uint32_t i = m->bytes >= sizeof(*m) ? sizeof(*m) : 0; i < m->bytes; ++i)
    if (data[i] != byte_at(m, i)) return fail(w, "wrong data", (int)m->from, (int)m->tag, bytes);
  w->got[found] = 1;
}

/* Of those with this sender and tag the first must come first. */
static void check_order(Worker* w, const MPI_Status* status, uint32_t bytes, const unsigned char* data) {
  Message m;
  if (bytes < sizeof(m)) return;
  memcpy(&m, data, sizeof(m));
  if (m.number < w->least[m.from]) fail(w, "overtaken", status->MPI_SOURCE, status->MPI_TAG, (int)bytes);
  w->least[m.from] = m.number + 1;
}

static void take(Worker* w, const unsigned char* data, const MPI_Status* status, int in_order) {
  int bytes;
  MPI_Get_count(status, MPI_BYTE, &bytes);
  if (in_order) check_order(w, status, (uint32_t)bytes, data);
  accept_message(w, data, status);
}

static void complete(Worker* w, int count, MPI_Request* requests, MPI_Status* statuses) {
  int done = 0, index, left = count, indices[MOST];
  MPI_Status some[MOST];
  switch (next(&w->own, 6)) {
    case 0:
      MPI_Waitall(count, requests, statuses);
      return;
    case 1:
      while (!done) MPI_Testall(count, requests, &done, statuses);
      return;
    case 2:
      for (int i = count - 1; i >= 0; --i) MPI_Wait(&requests[i], &statuses[i]);
      return;
    case 3:
      for (; left > 0; --left) {
        MPI_Waitany(count, requests, &index, &some[0]);
        statuses[index] = some[0];
      }
      return;
    case 4:
      for (int i = 0; i < count; ++i)
        for (done = 0; !done;) MPI_Test(&requests[i], &done, &statuses[i]);
      return;
    default:
      while (left > 0) {
        (left % 2 ? MPI_Waitsome : MPI_Testsome)(count, requests, &done, indices, some);
        for (int i = 0; i < done; ++i) statuses[indices[i]] = some[i];
        left -= done;
      }
  }
}

static void plan(Worker* w) {
  static const uint32_t kLengths[] = {0, 8, 700, 1023, 1024, 1025, 2048, 5000, 30000, LONGEST};
  w->count = 1 + (int)next(&w->common, MOST);
  for (int i = 0; i < w->count; ++i) {
    Message* m = &w->messages[i];
    memset(m, 0, sizeof(*m));
    m->from = next(&w->common, (uint32_t)w->size);
    m->to = next(&w->common, (uint32_t)w->size);
    m->tag = next(&w->common, TAGS);
    m->bytes = kLengths[next(&w->common, 10)];
    m->how = next(&w->common, 5);
    m->number = w->sent[m->from][m->to]++;
    w->got[i] = m->to != (uint32_t)w->rank;
  }
}

static int start_sends(Worker* w, MPI_Request* requests) {
  int count = 0;
  for (int i = 0; i < w->count; ++i) {
    const Message* m = &w->messages[i];
    if (m->from != (uint32_t)w->rank) continue;
    MPI_Request* request = &requests[count++];
    write_message(w->out[i], m);
    const int bytes = (int)m->bytes, to = (int)m->to, tag = (int)m->tag;
    if (m->how == 0)
      MPI_Issend(w->out[i], bytes, MPI_BYTE, to, tag, w->comm, request);
    else if (m->how == 1)
      MPI_Send_init(w->out[i], bytes, MPI_BYTE, to, tag, w->comm, request);
    else
      MPI_Isend(w->out[i], bytes, MPI_BYTE, to, tag, w->comm, request);
    if (m->how == 1) MPI_Start(request);
  }
  return count;
}

static void end_sends(Worker* w, int count, MPI_Request* requests) {
  MPI_Status statuses[MOST];
  MPI_Request copies[MOST];
  memcpy(copies, requests, sizeof(copies));
  for (int i = 0; i < count; ++i) MPI_Wait(&copies[i], &statuses[i]);
  (void)w;
  for (int i = 0; i < count; ++i)
    if (copies[i] != MPI_REQUEST_NULL) MPI_Request_free(&copies[i]);
}

/* Posts receives for all that come: each for its own, or any of them. */
static int post(Worker* w, MPI_Request* requests, int any, int persistent) {
  int count = 0;
  for (int i = 0; i < w->count; ++i) {
    const Message* m = &w->messages[i];
    if (m->to != (uint32_t)w->rank) continue;
    const int from = any ? MPI_ANY_SOURCE : (int)m->from, tag = any ? MPI_ANY_TAG : (int)m->tag;
    const int room = any ? LONGEST : (int)m->bytes;
    if (persistent) {
      MPI_Recv_init(w->in[count], room, MPI_BYTE, from, tag, w->comm, &requests[count]);
      MPI_Start(&requests[count]);
    } else {
      MPI_Irecv(w->in[count], room, MPI_BYTE, from, tag, w->comm, &requests[count]);
    }
    ++count;
  }
  return count;
}

static void probe_and_receive(Worker* w, int left) {
  for (; left > 0; --left) {
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    int flag = 0, bytes;
    const uint32_t how = next(&w->own, 5);
    /* A tag of one that is still to come, or any. */
    int tag = MPI_ANY_TAG, from = MPI_ANY_SOURCE;
    if (next(&w->own, 2) == 0) {
      for (int i = w->count - 1; i >= 0; --i) {
        if (w->messages[i].to != (uint32_t)w->rank || w->got[i]) continue;
        tag = (int)w->messages[i].tag, from = (int)w->messages[i].from;
        break;
      }
    }
    if (how < 3) {
      if (how == 0) MPI_Probe(from, tag, w->comm, &status);
      while (how != 0 && !flag) MPI_Iprobe(from, tag, w->comm, &flag, &status);
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      if (how == 2) {
        MPI_Irecv(w->in[0], bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, w->comm, &request);
        MPI_Wait(&request, &status);
      } else {
        MPI_Recv(w->in[0], bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, w->comm, &status);
      }
    } else {
      if (how == 3) MPI_Mprobe(from, tag, w->comm, &message, &status);
      while (how != 3 && !flag) MPI_Improbe(from, tag, w->comm, &flag, &message, &status);
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      if (next(&w->own, 2) == 0) {
        MPI_Mrecv(w->in[0], bytes, MPI_BYTE, &message, &status);
      } else {
        MPI_Imrecv(w->in[0], bytes, MPI_BYTE, &message, &request);
        MPI_Wait(&request, &status);
      }
    }
    take(w, w->in[0], &status, 0);
  }
}

static void* run(void* argument) {
  Worker* const w = argument;
  for (int round = 0; round < w->rounds; ++round) {
    MPI_Request sends[MOST], receives[MOST];
    MPI_Status statuses[MOST];
    plan(w);
    memset(w->least, 0, sizeof(w->least));
    const uint32_t way = next(&w->own, 6);
    int sent = 0, received = 0, coming = 0;
    for (int i = 0; i < w->count; ++i) coming += !w->got[i];
    const int first = way < 3 && next(&w->own, 2) == 0; /* receives are posted before anything is sent */
    if (!first) sent = start_sends(w, sends);
    if (way < 3) received = post(w, receives, way != 0, way == 2);
    if (first) sent = start_sends(w, sends);
    if (way < 3) {
      complete(w, received, receives, statuses);
      for (int i = 0; i < received; ++i) take(w, w->in[i], &statuses[i], way != 0);
      for (int i = 0; i < received; ++i)
        if (receives[i] != MPI_REQUEST_NULL) MPI_Request_free(&receives[i]);
    } else if (way == 3) {
      for (; coming > 0; --coming) {
        MPI_Recv(w->in[0], LONGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, w->comm, &statuses[0]);
        take(w, w->in[0], &statuses[0], 1);
      }
    } else {
      probe_and_receive(w, coming);
    }
    end_sends(w, sent, sends);
    for (int i = 0; i < w->count; ++i)
      if (!w->got[i])
        fail(w, "did not come", (int)w->messages[i].from, (int)w->messages[i].tag, (int)w->messages[i].bytes);
    MPI_Barrier(w->comm); /* a wildcard is for messages of one round */
  }
  return NULL;
}

int main(int argc, char** argv) {
  const int seed = argc > 1 ? atoi(argv[1]) : 1, rounds = argc > 2 ? atoi(argv[2]) : 50;
  int threads = argc > 3 ? atoi(argv[3]) : 1, provided, wrong = 0;
  static Worker workers[8];
  pthread_t ids[8];
  MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  if (threads > 1 && provided < MPI_THREAD_MULTIPLE) threads = 1;
  for (int t = 0; t < threads; ++t) {
    Worker* w = &workers[t];
    MPI_Comm_dup(MPI_COMM_WORLD, &w->comm);
    MPI_Comm_rank(w->comm, &w->rank);
    MPI_Comm_size(w->comm, &w->size);
    w->common = (uint64_t)seed * 1000 + (uint64_t)t;
    w->own = w->common * 77 + (uint64_t)w->rank;
    w->rounds = rounds;
    for (int i = 0; i < MOST; ++i) w->out[i] = malloc(LONGEST), w->in[i] = malloc(LONGEST);
  }
  for (int t = 1; t < threads; ++t) pthread_create(&ids[t], NULL, &run, &workers[t]);
  run(&workers[0]);
  for (int t = 1; t < threads; ++t) pthread_join(ids[t], NULL);
  for (int t = 0; t < threads; ++t) wrong += workers[t].wrong, MPI_Comm_free(&workers[t].comm);
  report("random messages", wrong == 0);
  return finish();
}
