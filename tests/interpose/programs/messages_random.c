/* SPDX-License-Identifier: BSD-3-Clause
 * Random messages of all lengths among all ranks, sent and received by all calls, in one thread or several, each with a
 * communicator of its own, or (SHARED) with tags of its own. A message says whose it is: what a receive has got is checked
 * against MPI's rules.
 * Usage: messages_random SEED ROUNDS THREADS [SHARED] */
#include "check.h"

#include <pthread.h>
#include <stdint.h>

enum {
  MOST_RANKS = 8,
  MOST_THREADS = 8,
  MOST = 24,
  LONGEST = 120000,
  TAGS = 3,
  PIECE = 700,
  GAP = 60,
  WORD_TAG = 1000,
  BUFFERED = 64 << 20
};

typedef struct {
  uint32_t from, to, tag, number; /* number: of this sender's to that receiver */
  uint32_t bytes, how;
} Message;

typedef struct {
  MPI_Comm comm, quiet; /* quiet: for collectives */
  uint64_t common, own; /* states of random numbers: the same on all ranks, and not */
  int rank, size, rounds, wrong;
  int first_tag, tags, any_tag, word_tag; /* any_tag: ours, where others share the communicator */
  Message messages[MOST];
  int count;
  uint32_t sent[MOST_RANKS][MOST_RANKS];
  uint32_t least[MOST_RANKS]; /* by sender: the next number in this round */
  unsigned char *out[MOST], *in[MOST], *spread;
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

static void complete(Worker* w, int count, MPI_Request* requests, MPI_Status* statuses, int receives) {
  int done = 0, index, left = 0, indices[MOST];
  MPI_Status some[MOST];
  for (int i = 0; i < count; ++i) left += requests[i] != MPI_REQUEST_NULL;
  switch (next(&w->own, 7)) {
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
    case 5:
      for (int i = count - 1; i >= 0; --i) {
        for (done = 0; !done;) MPI_Request_get_status(requests[i], &done, &some[0]);
        MPI_Wait(&requests[i], &statuses[i]);
        if (receives && some[0].MPI_TAG != statuses[i].MPI_TAG)
          fail(w, "two statuses", some[0].MPI_SOURCE, some[0].MPI_TAG, 0);
      }
      return;
    default:
      while (left > 0) {
        (left % 2 ? MPI_Waitsome : MPI_Testsome)(count, requests, &done, indices, some);
        for (int i = 0; i < done; ++i) statuses[indices[i]] = some[i];
        left -= done;
      }
  }
}

/* Whether all receive before anything is sent, so that every kind of send may be used. */
static int plan(Worker* w) {
  static const uint32_t kLengths[] = {0, 8, 700, 1023, 1024, 1025, 2048, 5000, 30000, LONGEST};
  w->count = 1 + (int)next(&w->common, MOST);
  for (int i = 0; i < w->count; ++i) {
    Message* m = &w->messages[i];
    memset(m, 0, sizeof(*m));
    m->from = next(&w->common, (uint32_t)w->size);
    m->to = next(&w->common, (uint32_t)w->size);
    m->tag = (uint32_t)w->first_tag + next(&w->common, (uint32_t)w->tags);
    m->bytes = kLengths[next(&w->common, 10)];
    m->how = next(&w->common, 14);
    m->number = w->sent[m->from][m->to]++;
    w->got[i] = m->to != (uint32_t)w->rank;
  }
  return next(&w->common, 3) == 0;
}

/* Pieces with gaps between them, so that the message is none in memory. */
static void start_spread(Worker* w, int i, MPI_Request* request) {
  const Message* m = &w->messages[i];
  int lengths[LONGEST / PIECE + 1], places[LONGEST / PIECE + 1], pieces = 0;
  unsigned char* const data = w->spread + (size_t)i * 2 * LONGEST;
  MPI_Datatype type;
  for (uint32_t at = 0; at < m->bytes; at += PIECE, ++pieces) {
    lengths[pieces] = m->bytes - at < PIECE ? (int)(m->bytes - at) : PIECE;
    places[pieces] = pieces * (PIECE + GAP);
    memcpy(data + places[pieces], w->out[i] + at, (size_t)lengths[pieces]);
  }
  MPI_Type_indexed(pieces, lengths, places, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  MPI_Isend(data, 1, type, (int)m->to, (int)m->tag, w->comm, request);
  MPI_Type_free(&type);
}

static int start_sends(Worker* w, MPI_Request* requests, int all_receive) {
  int count = 0;
  for (int i = 0; i < w->count; ++i) {
    const Message* m = &w->messages[i];
    if (m->from != (uint32_t)w->rank) continue;
    MPI_Request* request = &requests[count++];
    *request = MPI_REQUEST_NULL;
    write_message(w->out[i], m);
#define MESSAGE w->out[i], (int)m->bytes, MPI_BYTE, (int)m->to, (int)m->tag, w->comm
    switch (all_receive || m->how < 8 ? m->how : m->how - 8) {
      case 0:
        MPI_Issend(MESSAGE, request);
        break;
      case 1:
        MPI_Send_init(MESSAGE, request);
        MPI_Start(request);
        break;
      case 2:
        MPI_Ssend_init(MESSAGE, request);
        MPI_Startall(1, request);
        break;
      case 3:
        MPI_Isend(MESSAGE, request);
        MPI_Request_free(request); /* what is received was read */
        break;
      case 4:
        start_spread(w, i, request);
        break;
      case 7:
        MPI_Ibsend(MESSAGE, request);
        break;
      case 8:
        MPI_Irsend(MESSAGE, request);
        break;
      case 9:
        MPI_Rsend(MESSAGE);
        break;
      case 10:
        MPI_Rsend_init(MESSAGE, request);
        MPI_Start(request);
        break;
      case 11: /* to oneself it may wait for ever */
        if (m->to != m->from)
          MPI_Ssend(MESSAGE);
        else
          MPI_Isend(MESSAGE, request);
        break;
      case 12:
        if (m->to != m->from)
          MPI_Send(MESSAGE);
        else
          MPI_Isend(MESSAGE, request);
        break;
      default:
        MPI_Isend(MESSAGE, request);
    }
#undef MESSAGE
  }
  return count;
}

static void end_sends(Worker* w, int count, MPI_Request* requests) {
  MPI_Status statuses[MOST];
  MPI_Request copies[MOST];
  memcpy(copies, requests, sizeof(copies));
  if (next(&w->own, 2) == 0) complete(w, count, copies, statuses, 0);
  MPI_Waitall(count, copies, statuses);
  for (int i = 0; i < count; ++i)
    if (copies[i] != MPI_REQUEST_NULL) MPI_Request_free(&copies[i]);
}

/* Posts receives for all that come: each for its own, or any of them. */
static int post(Worker* w, MPI_Request* requests, int any, int persistent) {
  int count = 0;
  for (int i = 0; i < w->count; ++i) {
    const Message* m = &w->messages[i];
    if (m->to != (uint32_t)w->rank) continue;
    const int from = any ? MPI_ANY_SOURCE : (int)m->from, tag = any ? w->any_tag : (int)m->tag;
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
    int tag = w->any_tag, from = MPI_ANY_SOURCE;
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

/* The first one of any, by one of the calls that wait for it. */
static void receive_any(Worker* w, MPI_Status* status) {
  MPI_Request back;
  int word = 1, there = 0;
  switch (next(&w->own, 3)) {
    case 0:
      MPI_Recv(w->in[0], LONGEST, MPI_BYTE, MPI_ANY_SOURCE, w->any_tag, w->comm, status);
      return;
    case 1:
      MPI_Irecv(&there, 1, MPI_INT, w->rank, w->word_tag, w->comm, &back);
      MPI_Sendrecv(&word, 1, MPI_INT, w->rank, w->word_tag, w->in[0], LONGEST, MPI_BYTE, MPI_ANY_SOURCE, w->any_tag,
                   w->comm, status);
      break;
    default:
      w->in[0][LONGEST - 1] = 1;
      MPI_Irecv(w->in[1], LONGEST, MPI_BYTE, w->rank, w->word_tag, w->comm, &back);
      MPI_Sendrecv_replace(w->in[0], LONGEST, MPI_BYTE, w->rank, w->word_tag, MPI_ANY_SOURCE, w->any_tag, w->comm,
                           status);
  }
  MPI_Wait(&back, MPI_STATUS_IGNORE);
  if (there != 1 && w->in[1][LONGEST - 1] != 1) fail(w, "the other half", w->rank, w->word_tag, 0);
}

static void cancel(Worker* w, MPI_Request* request) {
  MPI_Status status;
  int cancelled = 0;
  MPI_Cancel(request);
  MPI_Wait(request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  if (!cancelled) fail(w, "not cancelled", w->rank, w->word_tag, 0);
}

static void* run(void* argument) {
  Worker* const w = argument;
  for (int round = 0; round < w->rounds; ++round) {
    MPI_Request sends[MOST], receives[MOST];
    MPI_Status statuses[MOST];
    MPI_Request never;
    static unsigned char unused[LONGEST];
    const int all_receive = plan(w);
    memset(w->least, 0, sizeof(w->least));
    const uint32_t way = next(&w->own, all_receive ? 3 : 6);
    int sent = 0, received = 0, coming = 0;
    for (int i = 0; i < w->count; ++i) coming += !w->got[i];
    const int first = all_receive || (way < 3 && next(&w->own, 2) == 0); /* receives before sends */
    MPI_Irecv(unused, LONGEST, MPI_BYTE, w->rank, w->word_tag + MOST_THREADS, w->comm, &never);
    if (!first) sent = start_sends(w, sends, 0);
    if (way < 3) received = post(w, receives, way != 0, way == 2);
    if (all_receive) MPI_Barrier(w->quiet);
    if (first) sent = start_sends(w, sends, all_receive);
    if (way < 3) {
      complete(w, received, receives, statuses, 1);
      for (int i = 0; i < received; ++i) take(w, w->in[i], &statuses[i], way != 0);
      for (int i = 0; i < received; ++i)
        if (receives[i] != MPI_REQUEST_NULL) MPI_Request_free(&receives[i]);
    } else if (way == 3) {
      for (; coming > 0; --coming) {
        receive_any(w, &statuses[0]);
        take(w, w->in[0], &statuses[0], 1);
      }
    } else {
      probe_and_receive(w, coming);
    }
    end_sends(w, sent, sends);
    for (int i = 0; i < w->count; ++i)
      if (!w->got[i])
        fail(w, "did not come", (int)w->messages[i].from, (int)w->messages[i].tag, (int)w->messages[i].bytes);
    cancel(w, &never);
    MPI_Barrier(w->quiet); /* a wildcard is for messages of one round */
  }
  return NULL;
}

int main(int argc, char** argv) {
  const int seed = argc > 1 ? atoi(argv[1]) : 1, rounds = argc > 2 ? atoi(argv[2]) : 50;
  int threads = argc > 3 ? atoi(argv[3]) : 1, provided, wrong = 0;
  const int shared = argc > 4;
  static Worker workers[MOST_THREADS];
  pthread_t ids[MOST_THREADS];
  void* buffer = malloc(BUFFERED);
  MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  if (threads > 1 && provided < MPI_THREAD_MULTIPLE) threads = 1;
  for (int t = 0; t < threads; ++t) {
    Worker* w = &workers[t];
    MPI_Comm_dup(MPI_COMM_WORLD, &w->quiet);
    if (shared && t > 0)
      w->comm = workers[0].comm;
    else
      MPI_Comm_dup(MPI_COMM_WORLD, &w->comm);
    w->tags = shared ? 1 : TAGS;
    w->first_tag = shared ? t : 0;
    w->any_tag = shared ? t : MPI_ANY_TAG;
    w->word_tag = WORD_TAG + t;
    w->spread = malloc((size_t)MOST * 2 * LONGEST);
    MPI_Comm_rank(w->comm, &w->rank);
    MPI_Comm_size(w->comm, &w->size);
    w->common = (uint64_t)seed * 1000 + (uint64_t)t;
    w->own = w->common * 77 + (uint64_t)w->rank;
    w->rounds = rounds;
    for (int i = 0; i < MOST; ++i) w->out[i] = malloc(LONGEST), w->in[i] = malloc(LONGEST);
  }
  MPI_Buffer_attach(buffer, BUFFERED);
  for (int t = 1; t < threads; ++t) pthread_create(&ids[t], NULL, &run, &workers[t]);
  run(&workers[0]);
  for (int t = 1; t < threads; ++t) pthread_join(ids[t], NULL);
  MPI_Buffer_detach(&buffer, &provided);
  for (int t = 0; t < threads; ++t) {
    wrong += workers[t].wrong;
    MPI_Comm_free(&workers[t].quiet);
    if (!shared || t == 0) MPI_Comm_free(&workers[t].comm);
  }
  report("random messages", wrong == 0);
  return finish();
}
