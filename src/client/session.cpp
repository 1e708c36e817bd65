// SPDX-License-Identifier: BSD-3-Clause
#include "client/session.hpp"

#include "base/result.hpp"
#include "client/lent.hpp"
#include "session/futex.hpp"

#include <bit>
#include <sys/mman.h>
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
      life(header()),
      arena(layout::kArenaOffset, layout::kSegmentBytes),
      heap(segment.bytes() - layout::kSegmentBytes) {
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

void offpath_session::use_memory(offpath::client::moved::Named named, bool comes_after) {
  if (moved_memory == nullptr || life.lost) return;
  if (comes_after) named.dense.clear();
  moved_memory->use(named);
}

void offpath_session::ring() {
  unrung = 0;
  if (life.wake_worker()) ++doorbell_count;
}

void offpath_session::shrink() {
  life.close();
  lent_file.reset();
  if (!heap.empty()) {  // the program has memory of it
    if (moved_memory == nullptr) segment.close_descriptor();
    return;
  }
  moved_memory.reset();
  heap = offpath::client::Heap(0);
  segment.keep_first(layout::kArenaOffset);
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
    session->successor->end();
  } else {  // their threads are not here
    [[maybe_unused]] auto* const parents = session->notifier.release();
    [[maybe_unused]] auto* const parents_too = session->submitter.release();
    [[maybe_unused]] auto* const parents_as_well = session->successor.release();
  }
  if (session->mine() && session->life.check()) session->life.leave();
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
  return session != nullptr && session->mine() && session->life.check() ? 1 : 0;
}

int offpath_session_holds_back(offpath_session_t* session) {
  if (!session->mine()) return 0;
  std::lock_guard lock(session->mutex);
  return session->queue.empty() ? 0 : 1;
}

int offpath_session_busy(offpath_session_t* session) {
  if (!session->mine() || session->life.lost) return 0;
  if (session->outstanding.load(std::memory_order_relaxed) == 0) return 0;
  // What has ended counts until somebody looks.
  if (const std::unique_lock lock(session->mutex, std::try_to_lock); lock.owns_lock()) session->harvest();
  return session->outstanding.load(std::memory_order_relaxed) == 0 ? 0 : 1;
}

int offpath_session_used(offpath_session_t* session) {
  return session->header().in_use.load(std::memory_order_acquire) != 0 ? 1 : 0;
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
  if (session->life.lost && !session->successor->helps()) return OFFPATH_ERR_SERVICE_LOST;
  head.waiters.fetch_add(1, std::memory_order_seq_cst);
  layout::futex_wait(head.events, seen, std::min(timeout_ns, kMaxSleepNs));
  head.waiters.fetch_sub(1, std::memory_order_seq_cst);
  if (head.events.load(std::memory_order_acquire) != seen) return OFFPATH_OK;
  return session->life.check() || session->successor->helps() ? OFFPATH_IN_PROGRESS : OFFPATH_ERR_SERVICE_LOST;
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
  counters->service_pid = session->life.lost ? 0 : static_cast<uint32_t>(session->life.process());
  counters->service_workers_count = session->service.workers;
  counters->service_clients_count = session->service.clients;
  counters->service_helpers_count = session->service.helpers;
  counters->silence_ms = session->life.lost ? session->life.silence_ms() : 0;
  counters->service_cpu_ns = session->life.lost ? 0 : offpath::base::process_clock_ns(session->life.process());
  return OFFPATH_OK;
}

int64_t offpath_session_saved_ns(offpath_session_t* session) {
  if (session == nullptr || !session->mine()) return 0;
  return static_cast<int64_t>(session->header().saved_ns.load(std::memory_order_relaxed));
}

uint64_t offpath_session_starved_ns(offpath_session_t* session) {
  return session == nullptr ? 0 : session->life.starved_ns();
}

}  // extern "C"
