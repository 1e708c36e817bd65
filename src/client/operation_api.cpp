// SPDX-License-Identifier: BSD-3-Clause
// The C API's operations once they are posted: testing, waiting, describing.
#include "base/result.hpp"
#include "client/session.hpp"

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstring>

using offpath::base::ErrnoGuard;
namespace layout = offpath::session;
using layout::Slot;
using layout::SlotState;

namespace {

constexpr uint32_t kNamedRanks = 8;

// As snprintf, behind what is there already.
void append(char* text, size_t capacity, const char* format, ...) __attribute__((format(printf, 3, 4)));
void append(char* text, size_t capacity, const char* format, ...) {
  const size_t used = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + used, capacity - used, format, arguments);
  va_end(arguments);
}

void describe_active(const offpath_op& op, char* text, size_t capacity) {
  if (op.kind == layout::OpKind::remote) return append(text, capacity, "waits for rank %u", op.target);
  if (op.kind == layout::OpKind::task) return append(text, capacity, "runs, or waits for an executor");
  if (op.kind == layout::OpKind::file_write || op.kind == layout::OpKind::file_read)
    return append(text, capacity, "moves %llu bytes", static_cast<unsigned long long>(op.bytes));
  const Slot& entry = op.session->slot(op.slot);
  const uint32_t steps = entry.steps_left.load(std::memory_order_relaxed);
  const uint32_t exports = entry.exports_left.load(std::memory_order_relaxed);
  append(text, capacity, "%u step%s and %u block%s to give left", steps, steps == 1 ? "" : "s", exports,
         exports == 1 ? "" : "s");
  const auto* open = op.session->at<layout::Atomic32>(op.open_offset());
  uint32_t named = 0;
  for (uint32_t rank = 0; rank < op.team->size; ++rank) {
    if (rank == op.team->rank || open[rank].load(std::memory_order_relaxed) == 0) continue;
    if (named == kNamedRanks) return append(text, capacity, ", ...");
    append(text, capacity, named++ == 0 ? "; waits for rank %u" : ", %u", rank);
  }
}

// Notes that the program waits, as long as it lives.
class Waiting {
 public:
  Waiting(offpath_session& session, uint64_t begin_ns) : session_(session), begin_ns_(begin_ns) {
    offpath_session_note_wait(&session_, begin_ns_, 0);
  }
  ~Waiting() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    offpath_session_note_wait(&session_, begin_ns_, static_cast<uint64_t>(now.count()));
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  offpath_session& session_;
  uint64_t begin_ns_;
};

}  // namespace

extern "C" {

offpath_status_t offpath_op_test(offpath_op_t* op) {
  offpath_session& session = *op->session;
  const auto known = static_cast<offpath_status_t>(op->status.load(std::memory_order_acquire));
  if (known != OFFPATH_IN_PROGRESS) return known;
  const uint32_t slot = op->slot;
  const bool done = slot != offpath_op::kQueued &&
                    session.slot(slot).state.load(std::memory_order_acquire) == static_cast<uint32_t>(SlotState::done);
  if (!session.mine()) return OFFPATH_ERR_STATE;
  ErrnoGuard guard;
  const bool queued = slot == offpath_op::kQueued;
  if (!done && !queued && !session.life.lost && ++op->test_count % 1024 != 0) return OFFPATH_IN_PROGRESS;
  if (!done) session.life.check();
  std::lock_guard lock(session.mutex);
  if (queued) session.reap_orphans();
  const offpath_status_t status = session.settle(*op);
  session.drain_queue();
  return status;
}

offpath_status_t offpath_op_help(offpath_op_t* op) {
  const offpath_status_t status = offpath_op_test(op);
  if (status != OFFPATH_IN_PROGRESS) return status;
  std::lock_guard lock(op->session->mutex);
  op->copy_own_blocks();
  return OFFPATH_IN_PROGRESS;
}

offpath_status_t offpath_op_wait(offpath_op_t* op, uint64_t timeout_ns) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  offpath_session& session = *op->session;
  const Waiting waiting(session, static_cast<uint64_t>(start.time_since_epoch().count()));
  while (true) {
    const uint32_t seen = offpath_session_events(&session);
    const offpath_status_t status = offpath_op_help(op);
    if (status != OFFPATH_IN_PROGRESS) return status;
    const auto passed = static_cast<uint64_t>((Clock::now() - start).count());
    if (passed >= timeout_ns) return OFFPATH_IN_PROGRESS;
    offpath_session_sleep(&session, seen, std::min<uint64_t>(timeout_ns - passed, 100000000));
  }
}

void offpath_session_note_wait(offpath_session_t* session, uint64_t begin_ns, uint64_t end_ns) {
  if (session == nullptr || !session->mine()) return;
  layout::SegmentHeader& header = session->header();
  header.waiting_since_ns.store(end_ns == 0 ? begin_ns : 0, std::memory_order_relaxed);
  if (end_ns > begin_ns) header.waited_ns.fetch_add(end_ns - begin_ns, std::memory_order_relaxed);
}

void offpath_session_time_operations(offpath_session_t* session, int on) {
  session->timing.store(on != 0, std::memory_order_relaxed);
}

offpath_status_t offpath_op_times(offpath_op_t* op, offpath_op_times_t* times) {
  if (op == nullptr || times == nullptr || times->struct_bytes != sizeof(*times)) return OFFPATH_ERR_ARGUMENT;
  if (op->status.load(std::memory_order_acquire) == OFFPATH_IN_PROGRESS || op->times.struct_bytes == 0)
    return OFFPATH_ERR_STATE;
  *times = op->times;
  return OFFPATH_OK;
}

void offpath_op_describe(offpath_op_t* op, char* text, size_t capacity) {
  ErrnoGuard guard;
  if (capacity == 0) return;
  if (!op->session->mine()) {
    snprintf(text, capacity, "an operation of the parent process");
    return;
  }
  std::lock_guard lock(op->session->mutex);
  if (op->again != nullptr) return offpath_op_describe(op->again.get(), text, capacity);
  const auto status = static_cast<offpath_status_t>(op->status.load());
  snprintf(text, capacity, "%s #%llu: ", op->name, static_cast<unsigned long long>(op->sequence));
  if (status != OFFPATH_IN_PROGRESS) {
    const bool explained = op->kind == layout::OpKind::task && op->result.text[0] != '\0';
    append(text, capacity, "%s", explained ? op->result.text : offpath_status_string(status));
  } else if (op->slot == offpath_op::kQueued) {
    append(text, capacity, "waits for room in the session segment");
  } else if (op->session->slot(op->slot).state.load() == static_cast<uint32_t>(SlotState::posted)) {
    const bool after = does(op->kind, layout::kNamesAfter);
    append(text, capacity,
           after ? "waits for what it comes after, or the service" : "waits for the service to begin it");
  } else {
    describe_active(*op, text, capacity);
  }
}

void offpath_op_free(offpath_op_t* op) {
  if (op == nullptr) return;
  ErrnoGuard guard;
  std::unique_ptr<offpath_op> owned(op);
  offpath_session& session = *op->session;
  if (!session.mine()) {
    [[maybe_unused]] const auto* parents =
        owned.release();  // the child has a copy of the parent's object; leave it alone
    return;
  }
  std::lock_guard lock(session.mutex);
  if (session.settle(*op) == OFFPATH_IN_PROGRESS || op->pins > 0) {
    session.orphans.push_back(std::move(owned));
  }
  session.drain_queue();
}

}  // extern "C"
