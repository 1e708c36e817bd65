// SPDX-License-Identifier: BSD-3-Clause
#include "client/session.hpp"

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/process.hpp"
#include "base/result.hpp"
#include "client/lent.hpp"
#include "session/futex.hpp"

#include <bit>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

using offpath::base::ErrnoGuard;
namespace layout = offpath::session;

namespace {
constexpr size_t kPage = 4096;
constexpr uint64_t kMaxSleepNs = 1000000000;
}  // namespace

offpath_session::offpath_session(offpath::base::Memfd memory)
    : segment(std::move(memory)),
      arena(layout::kArenaOffset, layout::kSegmentBytes),
      heap(segment.bytes() - layout::kSegmentBytes),
      silence_(offpath::base::silence_limit_ns()) {
  void* page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED) {
    fork_mark = static_cast<uint8_t*>(page);
    *fork_mark = 1;
    madvise(page, kPage, MADV_WIPEONFORK);
  }
  layout::SegmentHeader& head = header();
  layout::describe_layout(head);
  head.shared_address = reinterpret_cast<uint64_t>(segment.data() + layout::kSegmentBytes);
  head.shared_bytes = heap.capacity();
  head.probe_address = reinterpret_cast<uint64_t>(&probe);
  free_slots.reserve(layout::kSlotCount);
  by_slot.resize(layout::kSlotCount);
  for (uint32_t i = layout::kSlotCount; i > 0; --i) free_slots.push_back(i - 1);
  own.session = this;
  own.size = own.nodes = 1;
}

offpath_session::~offpath_session() {
  const auto stay = offpath::client::Lent::of_process().leave(*this);
  if (!stay.empty()) segment.unmap_but(stay);
  if (fork_mark != nullptr) munmap(fork_mark, kPage);
}

layout::SegmentHeader& offpath_session::header() const { return *at<layout::SegmentHeader>(0); }
layout::Slot& offpath_session::slot(uint32_t index) const { return at<layout::Slot>(layout::kSlotsOffset)[index]; }
layout::TeamRecord& offpath_session::team_record(const offpath_team& team) const {
  return *at<layout::TeamRecord>(team.record);
}

bool offpath_session::check_alive() {
  if (lost.load(std::memory_order_relaxed)) return false;
  if (hangs_up()) {
    note_silence();
    if (lost.exchange(true)) return false;
    header().events.fetch_add(1, std::memory_order_seq_cst);
    socket_file.remove();  // the dead service cannot any more
    return false;
  }
  listen_for_life();
  return true;
}

bool offpath_session::hangs_up() {
  char byte;
  const ssize_t got = recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

void offpath_session::listen_for_life() {
  using Verdict = offpath::base::Silence::Verdict;
  if (listening_.test_and_set(std::memory_order_acquire)) return;
  const bool answered = header().answered.load(std::memory_order_acquire) == asked_;
  const Verdict verdict = judge(silence_, offpath::base::clock_ns(CLOCK_MONOTONIC_COARSE), answered);
  if (verdict == Verdict::ask) {
    header().asked.store(++asked_, std::memory_order_seq_cst);
    wake_worker();
  }
  if (verdict == Verdict::silent) end_service();
  listening_.clear(std::memory_order_release);
}

// Whoever looks has listening_, or is the last one here.
offpath::base::Silence::Verdict offpath_session::judge(offpath::base::Silence& silence, uint64_t now_ns,
                                                       bool answered) {
  uint64_t spared_ns = 0;
  const auto verdict = silence.look(now_ns, answered, [&] { return spared_ns = starvation_.since_last_ns(now_ns); });
  if (verdict == offpath::base::Silence::Verdict::starved) starved_ns += spared_ns;
  return verdict;
}

// Another process may have ended it before we would have.
void offpath_session::note_silence() {
  if (silence_ms != 0 || listening_.test_and_set(std::memory_order_acquire)) return;
  const uint64_t unanswered_ns = silence_.unanswered_ns();
  if (unanswered_ns > offpath::base::silence_limit_ns() / 2)
    silence_ms = static_cast<uint32_t>(unanswered_ns / 1000000);
  listening_.clear(std::memory_order_release);
}

// It has the socket open, so it lives, after its number was made a descriptor: that is of no other process.
void offpath_session::end_service() {
  const offpath::base::Fd process = offpath::base::open_process(service_pid);
  if (hangs_up()) return;
  silence_ms = static_cast<uint32_t>(offpath::base::silence_limit_ns() / 1000000);
  offpath::base::kill_process(process, service_pid);
}

// One that is silent is ended, as it may still write into our memory.
void offpath_session::leave() {
  using offpath::base::Silence;
  const uint64_t limit_ns = offpath::base::silence_limit_ns();
  const uint64_t interval_ms = limit_ns == 0 ? 500 : Silence::interval_ns(limit_ns) / 1000000;
  const auto slice_ms = static_cast<int>(std::clamp<uint64_t>(interval_ms, 1, 1000));
  Silence silence(limit_ns);
  const uint8_t word = layout::kDetach;
  uint8_t answer = 0;
  bool hears = layout::send_message(socket.get(), &word, 1).ok();
  for (int rounds_left = 2; hears && rounds_left > 0;) {
    const auto reply = layout::receive_message(socket.get(), &answer, 1, slice_ms);
    if (reply.ok()) return;
    hears = reply.status().code() != OFFPATH_ERR_SERVICE_LOST;
    const bool silent = judge(silence, offpath::base::clock_ns(), false) == Silence::Verdict::silent;
    if (hears && silent) end_service();
    if (silent || limit_ns == 0) --rounds_left;
  }
  if (!hears) socket_file.remove();
}

void offpath_session::use_memory(offpath::client::moved::Named named, bool comes_after) {
  if (moved_memory == nullptr || lost) return;
  if (comes_after) named.dense.clear();
  moved_memory->use(named);
}

void offpath_session::ring() {
  unrung = 0;
  if (wake_worker()) ++doorbell_count;
}

bool offpath_session::wake_worker() {
  layout::SegmentHeader& head = header();
  if (head.worker_sleeps.load(std::memory_order_seq_cst) == 0) return false;
  if (head.worker_sleeps.exchange(0, std::memory_order_seq_cst) == 0) return false;
  const uint8_t doorbell = layout::kDoorbell;
  if (send(socket.get(), &doorbell, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN) check_alive();
  return true;
}

void offpath_session::wake_sleepers() const {
  header().events.fetch_add(1, std::memory_order_seq_cst);
  layout::futex_wake(header().events, INT32_MAX);
}

namespace {
void count_memory(offpath_session& session, offpath_session_counters_t& counters) {
#define OFFPATH_SERVICE_COUNTER(type, name, line, metric, about) \
  counters.name = std::bit_cast<type>(session.header().name.load(std::memory_order_relaxed));
#include <offpath/words/counters.def>
  std::lock_guard lock(session.mutex);
  counters.lent_count = session.lent_count;
  counters.lent_bytes = session.lent_bytes;
  const auto totals =
      session.moved_memory == nullptr ? offpath::client::moved::Totals{} : session.moved_memory->totals();
  counters.moved_count = totals.moved;
  counters.moved_bytes = totals.moved_bytes;
  counters.dropped_count = totals.dropped;
  counters.refused_kind_count = totals.refused_kind;
  counters.refused_window_count = totals.refused_window;
  counters.refused_room_count = totals.refused_room;
}
}  // namespace

extern "C" {

void offpath_session_detach(offpath_session_t* session) {
  if (session == nullptr) return;
  ErrnoGuard guard;
  offpath::client::waits::forget(*session);
  if (session->mine()) {
    session->notifier.reset();
    session->submitter.reset();
    session->successor.reset();
  } else {  // their threads are not here
    [[maybe_unused]] auto* const parents = session->notifier.release();
    [[maybe_unused]] auto* const parents_too = session->submitter.release();
    [[maybe_unused]] auto* const parents_as_well = session->successor.release();
  }
  if (session->mine() && session->check_alive()) session->leave();
  delete session;
}

offpath_status_t offpath_session_address(offpath_session_t* session, void* address, size_t capacity,
                                         size_t* address_bytes) {
  if (session == nullptr || address == nullptr || address_bytes == nullptr ||
      capacity < session->service.address_bytes) {
    return OFFPATH_ERR_ARGUMENT;
  }
  if (!session->mine()) return OFFPATH_ERR_STATE;
  memcpy(address, session->service.address, session->service.address_bytes);
  *address_bytes = session->service.address_bytes;
  return OFFPATH_OK;
}

int offpath_session_alive(offpath_session_t* session) {
  ErrnoGuard guard;
  return session != nullptr && session->mine() && session->check_alive() ? 1 : 0;
}

int offpath_session_holds_back(offpath_session_t* session) {
  if (!session->mine()) return 0;
  std::lock_guard lock(session->mutex);
  return session->queue.empty() ? 0 : 1;
}

int offpath_session_busy(offpath_session_t* session) {
  if (!session->mine() || session->lost) return 0;
  if (session->outstanding.load(std::memory_order_relaxed) == 0) return 0;
  // What has ended counts until somebody looks.
  if (const std::unique_lock lock(session->mutex, std::try_to_lock); lock.owns_lock()) session->harvest();
  return session->outstanding.load(std::memory_order_relaxed) == 0 ? 0 : 1;
}

int offpath_session_shares_memory(offpath_session_t* session) {
  return (session->service.flags & layout::kServiceIsFar) == 0 ? 1 : 0;
}

uint32_t offpath_session_events(offpath_session_t* session) {
  return session->header().events.load(std::memory_order_acquire);
}

offpath_status_t offpath_session_sleep(offpath_session_t* session, uint32_t seen, uint64_t timeout_ns) {
  ErrnoGuard guard;
  if (!session->mine()) return OFFPATH_ERR_STATE;
  layout::SegmentHeader& head = session->header();
  if (head.events.load(std::memory_order_acquire) != seen) return OFFPATH_OK;
  if (session->lost && !session->is_succeeded) return OFFPATH_ERR_SERVICE_LOST;
  head.waiters.fetch_add(1, std::memory_order_seq_cst);
  layout::futex_wait(head.events, seen, std::min(timeout_ns, kMaxSleepNs));
  head.waiters.fetch_sub(1, std::memory_order_seq_cst);
  if (head.events.load(std::memory_order_acquire) != seen) return OFFPATH_OK;
  return session->check_alive() || session->is_succeeded ? OFFPATH_IN_PROGRESS : OFFPATH_ERR_SERVICE_LOST;
}

offpath_status_t offpath_session_counters(offpath_session_t* session, offpath_session_counters_t* counters) {
  constexpr uint32_t kFirstBytes = offsetof(offpath_session_counters_t, in_place_bytes);  // as it was at first
  if (session == nullptr || counters == nullptr ||
      (counters->struct_bytes != sizeof(*counters) && counters->struct_bytes != kFirstBytes)) {
    return OFFPATH_ERR_ARGUMENT;
  }
  if (!session->mine()) return OFFPATH_ERR_STATE;
  ErrnoGuard guard;
  if (counters->struct_bytes == sizeof(*counters)) count_memory(*session, *counters);
  const layout::Counters& c = session->header().counters;
  counters->completed_count = c.completed.load(std::memory_order_relaxed);
  counters->failed_count = c.failed.load(std::memory_order_relaxed);
  counters->pulled_bytes = c.pulled_bytes.load(std::memory_order_relaxed);
  counters->served_bytes = c.served_bytes.load(std::memory_order_relaxed);
  counters->local_bytes = c.local_bytes.load(std::memory_order_relaxed);
  {
    std::lock_guard lock(session->mutex);
    counters->posted_count = session->posted_count;
    counters->doorbell_count = session->doorbell_count;
  }
  counters->service_pid = session->lost ? 0 : static_cast<uint32_t>(session->service_pid);
  counters->service_workers_count = session->service.workers;
  counters->service_clients_count = session->service.clients;
  counters->service_helpers_count = session->service.helpers;
  counters->silence_ms = session->lost ? session->silence_ms.load() : 0;
  counters->service_cpu_ns = 0;
  clockid_t clock;
  timespec used{};
  if (!session->lost && clock_getcpuclockid(session->service_pid, &clock) == 0 && clock_gettime(clock, &used) == 0) {
    counters->service_cpu_ns = static_cast<uint64_t>(used.tv_sec) * 1000000000 + static_cast<uint64_t>(used.tv_nsec);
  }
  return OFFPATH_OK;
}

int64_t offpath_session_saved_ns(offpath_session_t* session) {
  if (session == nullptr || !session->mine()) return 0;
  return static_cast<int64_t>(session->header().saved_ns.load(std::memory_order_relaxed));
}

uint64_t offpath_session_starved_ns(offpath_session_t* session) {
  return session == nullptr ? 0 : session->starved_ns.load(std::memory_order_relaxed);
}

}  // extern "C"
