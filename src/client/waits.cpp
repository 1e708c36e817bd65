// SPDX-License-Identifier: BSD-3-Clause
#include "client/waits.hpp"

#include "client/session.hpp"
#include "client/told.h"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <new>

namespace offpath::client::waits {
namespace {

constinit std::mutex mutex;
// With the mutex held:
offpath_session* first = nullptr;
uint32_t waiting = 0;   // threads
uint64_t since_ns = 0;  // when the first one began
bool asked = false;     // to be told

void begin(offpath_session& session) {
  session.noted_waits.ours = session.header().waiting_since_ns.load(std::memory_order_relaxed) == 0;
  if (session.noted_waits.ours) offpath_session_note_wait(&session, since_ns, 0);
}

void end(offpath_session& session, uint64_t end_ns) {
  if (session.noted_waits.ours) offpath_session_note_wait(&session, since_ns, end_ns);
  session.noted_waits.ours = false;
}

// Nobody says when a thread that polls begins to do something else, so each word of it counts for as long again as it was about, and
// for not much less or more than a balancer's patience.
constexpr uint64_t kShortestNs = 1000000, kLongestNs = 20000000;

void polls(offpath_session& one, uint64_t begin_ns, uint64_t end_ns) {
  session::SegmentHeader& header = one.header();
  if (header.waiting_since_ns.load(std::memory_order_relaxed) != 0) return;  // that counts
  header.waited_ns.fetch_add(end_ns - begin_ns, std::memory_order_relaxed);
  header.polls_until_ns.store(end_ns + std::clamp(end_ns - begin_ns, kShortestNs, kLongestNs),
                              std::memory_order_relaxed);
}

void polls_no_more(offpath_session& session) { session.header().polls_until_ns.store(0, std::memory_order_relaxed); }

// What the preloaded library calls.
void told(offpath_told_t what, uint64_t begin_ns, uint64_t end_ns) {
  const std::lock_guard lock(mutex);
  if (what == OFFPATH_TOLD_BLOCKS && waiting++ == 0) since_ns = begin_ns;
  if (what == OFFPATH_TOLD_BLOCKS && waiting > 1) return;
  if (what == OFFPATH_TOLD_GOES_ON && (waiting == 0 || --waiting > 0)) return;
  for (offpath_session* each = first; each != nullptr; each = each->noted_waits.next) {
    switch (what) {
      case OFFPATH_TOLD_BLOCKS:
        begin(*each);
        break;
      case OFFPATH_TOLD_GOES_ON:
        end(*each, end_ns);
        break;
      case OFFPATH_TOLD_POLLS:
        polls(*each, begin_ns, end_ns);
        break;
      case OFFPATH_TOLD_POLLS_NO_MORE:
        polls_no_more(*each);
        break;
    }
  }
}

// The sessions are the parent's, and so may be who holds the mutex.
void after_in_child() {
  new (&mutex) std::mutex;
  first = nullptr;
  waiting = 0;
}

// It is told until the process ends, so this library has to stay.
void ask_to_be_told() {
  const auto tell =
      reinterpret_cast<void (*)(offpath_wait_told_t*)>(dlsym(RTLD_DEFAULT, "offpath_frontend_tell_of_waits"));
  Dl_info own;
  if (tell == nullptr || dladdr(reinterpret_cast<void*>(&told), &own) == 0) return;
  [[maybe_unused]] void* stays = dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  pthread_atfork(nullptr, nullptr, &after_in_child);
  tell(&told);
}

}  // namespace

void note_in(offpath_session& session) {
  bool asks = false;
  {
    const std::lock_guard lock(mutex);
    if (session.noted_waits.listens) return;
    session.noted_waits.listens = true;
    session.noted_waits.next = first;
    first = &session;
    asks = !asked;
    asked = true;
  }
  if (asks) ask_to_be_told();
}

void forget(offpath_session& session) {
  const std::lock_guard lock(mutex);
  for (offpath_session** at = &first; *at != nullptr; at = &(*at)->noted_waits.next) {
    if (*at != &session) continue;
    *at = session.noted_waits.next;
    return;
  }
}

}  // namespace offpath::client::waits
