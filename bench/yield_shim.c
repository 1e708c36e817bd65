/* A polite MPICH for crowded machines: preloaded into the programs of a lab, on both sides of a comparison.
 *
 * 1. MPICH (ch4:ucx) polls without ever giving up the processor, so with more ranks than cores a rank that waits steals
 *    the time slice of the rank it waits for, and everything becomes 10 to 80 times slower. With OFFPATH_LAB_YIELD=1 it
 *    yields whenever a poll found nothing, and naps when 200 did. A comparison must have this on both sides, or it measures
 *    the crowding. (Yields for ever let strangers wait for a second, naps at once make short messages six times slower.)
 * 2. MPICH before 4.2 can hang in MPI_Finalize over TCP: a rank that has closed its endpoints waits in a barrier of the
 *    process manager, where it no longer polls, while another rank's endpoints cannot close without its answer
 *    (pmodels/mpich#6596; frequent where ranks are delayed). From the first endpoint closed to the end of the worker, a
 *    thread polls in its place. Only MPI_Finalize and MPI_Comm_disconnect close endpoints; a program that uses the
 *    latter is not for this library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

enum { POLL_INTERVAL_US = 1000, YIELDS = 200, NAP_NS = 50000 };

static struct {
  unsigned (*worker_progress)(void* worker);
  void* (*disconnect_nb)(void* endpoint);
  void (*request_free)(void* request);
  void (*worker_destroy)(void* worker);
  int naps;
} next;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t ucp_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; /* held round calls while the poller lives */
static pthread_t poller;
static int poller_lives; /* written by the main thread only */
static int poller_stops; /* under ucp_lock */
static void* last_worker;

static void* find(const char* name) {
  void* symbol = dlsym(RTLD_NEXT, name);
  if (!symbol) { /* UCX was opened with RTLD_LOCAL, so it is not behind us in the search order */
    void* ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
    if (ucp) symbol = dlsym(ucp, name);
  }
  return symbol;
}

static void find_all(void) {
  *(void**)&next.worker_progress = find("ucp_worker_progress");
  *(void**)&next.disconnect_nb = find("ucp_disconnect_nb");
  *(void**)&next.request_free = find("ucp_request_free");
  *(void**)&next.worker_destroy = find("ucp_worker_destroy");
  const char* wish = getenv("OFFPATH_LAB_YIELD");
  next.naps = wish && wish[0] == '1';
}

static void lock(void) {
  pthread_once(&once, find_all);
  if (poller_lives) pthread_mutex_lock(&ucp_lock);
}

static void unlock(void) {
  if (poller_lives) pthread_mutex_unlock(&ucp_lock);
}

static void* poll_for_the_others(void* unused) {
  (void)unused;
  for (int stop = 0; !stop; usleep(POLL_INTERVAL_US)) {
    pthread_mutex_lock(&ucp_lock);
    stop = poller_stops;
    if (!stop) next.worker_progress(last_worker);
    pthread_mutex_unlock(&ucp_lock);
  }
  return 0;
}

EXPORTED unsigned ucp_worker_progress(void* worker) {
  lock();
  last_worker = worker;
  unsigned done = next.worker_progress(worker);
  unlock();
  static __thread int looks; /* that found nothing, one after the other */
  if (done) {
    looks = 0;
  } else if (next.naps || poller_lives) {
    if (++looks <= YIELDS)
      sched_yield();
    else
      nanosleep(&(struct timespec){0, NAP_NS}, 0);
  }
  return done;
}

EXPORTED void* ucp_disconnect_nb(void* endpoint) {
  pthread_once(&once, find_all);
  if (!poller_lives && last_worker) {
    pthread_mutex_lock(&ucp_lock);
    poller_stops = 0;
    poller_lives = pthread_create(&poller, 0, poll_for_the_others, 0) == 0;
    pthread_mutex_unlock(&ucp_lock);
  }
  lock();
  void* request = next.disconnect_nb(endpoint);
  unlock();
  return request;
}

EXPORTED void ucp_request_free(void* request) {
  lock();
  next.request_free(request);
  unlock();
}

EXPORTED void ucp_worker_destroy(void* worker) {
  pthread_once(&once, find_all);
  if (poller_lives && worker == last_worker) {
    pthread_mutex_lock(&ucp_lock);
    poller_stops = 1;
    pthread_mutex_unlock(&ucp_lock);
    pthread_join(poller, 0);
    poller_lives = 0;
    last_worker = 0;
  }
  next.worker_destroy(worker);
}
