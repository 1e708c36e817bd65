/* A polite MPICH: preloaded into programs that run with more ranks than cores.
 *
 * MPICH (ch4:ucx) polls without ever giving up the processor, so a rank that waits steals the time slice of the rank it
 * waits for and everything becomes 10 to 80 times slower. Yielding whenever a poll found nothing cures that. A comparison
 * must use this on both sides, or the crowding and not the communication is what it measures. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

typedef unsigned (*progress_fn)(void *worker);

__attribute__((visibility("default"))) unsigned ucp_worker_progress(void *worker)
{
    static progress_fn next; /* a race writes the same value twice */
    progress_fn call = __atomic_load_n(&next, __ATOMIC_ACQUIRE);
    if (!call) {
        call = (progress_fn)dlsym(RTLD_NEXT, "ucp_worker_progress");
        if (!call) { /* UCX was opened with RTLD_LOCAL, so it is not behind us in the search order */
            void *ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
            call = ucp ? (progress_fn)dlsym(ucp, "ucp_worker_progress") : 0;
        }
        if (!call) return 0;
        __atomic_store_n(&next, call, __ATOMIC_RELEASE);
    }
    unsigned done = call(worker);
    if (!done) sched_yield();
    return done;
}
