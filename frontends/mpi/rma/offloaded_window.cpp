// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/rma/offloaded_window.hpp"

#include "base/clock.hpp"
#include "client/kept.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/waiting.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/native.hpp"

#include <utility>

namespace offpath::mpi {
namespace {

constexpr uint64_t kDataId = 1;
constexpr uint64_t kLocksId = 2;
constexpr uint64_t kPatienceNs = 10'000'000'000;

// Then the library prints the error, as one of MPI_Win_call_errhandler.
bool ends_the_job(MPI_Win win) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (native.Win_get_errhandler(win, &handler) != MPI_SUCCESS) return false;
  bool ends = handler == MPI_ERRORS_ARE_FATAL;
#ifdef MPI_ERRORS_ABORT
  ends = ends || handler == MPI_ERRORS_ABORT;
#endif
  native.Errhandler_free(&handler);
  return ends;
}

}  // namespace

void Staged::deliver() {
  if (!footprint) return;
  std::call_once(delivered_, [this] { scatter(*footprint, memory.get(), address, bytes); });
}

OffloadedWindow::OffloadedWindow(MPI_Win handle, Assembly team, std::vector<Exposed> exposed)
    : handle_(handle),
      team_(std::move(team)),
      exposed_(std::move(exposed)),
      epochs_(team_.size),
      handshake_(team_.shadow) {}

OffloadedWindow::~OffloadedWindow() { close(); }

offpath_status_t OffloadedWindow::open(void* base, uint64_t bytes, offpath_error_t* error) {
  offpath_team_t* const team = team_.service->open();
  if (team == nullptr) return OFFPATH_ERR_NO_MEMORY;
  offpath_window_params_t params{};
  params.struct_bytes = sizeof(params);
  params.id = kLocksId;
  const uint32_t keeps = client::keeping_flag();
  params.flags = keeps;  // a service that knows of a loss grants nothing more
  const offpath_status_t status = offpath_window_create(team, &params, &locks_, error);
  if (status != OFFPATH_OK) return status;
  params.id = kDataId;
  params.flags = keeps | (dynamic() ? OFFPATH_WINDOW_DYNAMIC : 0);
  params.base = bytes == 0 ? nullptr : base;
  params.bytes = bytes;
  const offpath_status_t opened = offpath_window_create(team, &params, &data_, error);
  if (opened != OFFPATH_OK || keeps == 0) return opened;
  AtHome part(size(), dynamic(), base, bytes);
  homecoming_ = std::make_unique<Homecoming>(data_, *team_.service, team_.shadow, rank(), size(), std::move(part));
  return opened;
}

void OffloadedWindow::close() {
  handle_.store(MPI_WIN_NULL, std::memory_order_release);
  // Where a loss left operations behind, the service may still read or write their staging memory.
  const bool is_quiet = data_ == nullptr || quiet();
  for (const auto& staged : staged_) {
    if (!is_quiet) staged->memory.abandon();
  }
  staged_.clear();
  end_followed();
  followed_.clear();
  if (homecoming_ != nullptr) homecoming_->close();
  offpath_window_destroy(std::exchange(data_, nullptr));
  offpath_window_destroy(std::exchange(locks_, nullptr));
  team_.service.reset();
  if (team_.shadow != MPI_COMM_NULL) native.Comm_free(&team_.shadow);
}

int OffloadedWindow::locate(int target, int64_t displacement, int64_t low, int64_t high, uint64_t* offset) const {
  if (dynamic()) {
    *offset = static_cast<uint64_t>(displacement);
    return MPI_SUCCESS;
  }
  const Exposed& there = exposed_[static_cast<size_t>(target)];
  int64_t at = 0, first = 0, end = 0;
  const bool wraps = __builtin_mul_overflow(displacement, there.unit_bytes, &at) ||
                     __builtin_add_overflow(at, low, &first) || __builtin_add_overflow(at, high, &end);
  if (wraps || first < 0 || end > there.bytes) return MPI_ERR_RMA_RANGE;
  *offset = static_cast<uint64_t>(at);
  return MPI_SUCCESS;
}

void OffloadedWindow::nudge() {
  const Inside inside;
  int arrived = 0;
  native.Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, team_.shadow, &arrived, MPI_STATUS_IGNORE);
}

void OffloadedWindow::wait_until(const char* call, const std::function<bool()>& ready) {
  const WaitTimer timer;
  Waiter waiter;
  const uint64_t begin = base::clock_ns();
  bool told = false;
  for (;;) {
    offloader.progress();
    // At home that moves the library, too. Where another thread is at it (mover.hpp), that needs the library's lock.
    const bool at_services = homecoming_ == nullptr || !homecoming_->has_turned();
    if (at_services) nudge();
    if (ready()) return;
    at_services ? waiter.pause() : waiter.poll();
    if (told || base::clock_ns() - begin < kPatienceNs) continue;
    told = true;
    say(job.settings(), LogLevel::info, "rank %d of a window has waited 10 s to %s: %llu of %llu operations are done",
        rank(), call, static_cast<unsigned long long>(offpath_window_completed(data_)),
        static_cast<unsigned long long>(offpath_window_issued(data_)));
  }
}

int OffloadedWindow::post(const offpath_remote_t& remote, offpath_op_t** op) {
  if (homecoming_ != nullptr && homecoming_->is_full())
    wait_until("post an operation", [&] { return !homecoming_->is_full(); });
  offpath_status_t status = offpath_remote(data_, &remote, op);
  if (status == OFFPATH_ERR_NO_MEMORY && !quiet()) {
    wait_until("post an operation", [&] {
      const bool idle = quiet();
      status = offpath_remote(data_, &remote, op);
      return status != OFFPATH_ERR_NO_MEMORY || idle || !team_.service->alive();
    });
  }
  return code_of(status);
}

void OffloadedWindow::keep(std::shared_ptr<Staged> staged) {
  staged->through = offpath_window_issued(data_);
  std::lock_guard lock(mutex_);
  // Data that was sent needs nobody any more; what is fetched waits for the application to ask for it.
  const uint64_t completed = over();
  while (!staged_.empty() && !staged_.front()->footprint && staged_.front()->through <= completed) staged_.pop_front();
  staged_.push_back(std::move(staged));
  any_staged_.store(true, std::memory_order_release);
}

void OffloadedWindow::follow(Submission submission) {
  end_followed();
  std::lock_guard lock(mutex_);
  followed_.push_back(std::move(submission));
  any_followed_.store(true, std::memory_order_release);
}

void OffloadedWindow::end_followed() {
  if (!any_followed_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(mutex_);
  for (; !followed_.empty(); followed_.pop_front()) {
    const offpath_status_t status = followed_.front().test(homecoming_.get());
    if (status == OFFPATH_IN_PROGRESS) break;
    followed_.front().end(status == OFFPATH_OK ? MPI_SUCCESS : offloader.errors().code_for(status));
  }
  any_followed_.store(!followed_.empty(), std::memory_order_release);
}

void OffloadedWindow::mark_unsent() {
  const uint64_t through = offpath_window_issued(data_);
  uint64_t known = unsent_.load(std::memory_order_relaxed);
  while (known < through && !unsent_.compare_exchange_weak(known, through, std::memory_order_release)) continue;
}

void OffloadedWindow::settle_staged(bool deliver) {
  if (!any_staged_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(mutex_);
  const uint64_t completed = over();
  std::erase_if(staged_, [&](const std::shared_ptr<Staged>& staged) {
    if (staged->through > completed) return false;
    if (deliver) staged->deliver();
    return true;
  });
  any_staged_.store(!staged_.empty(), std::memory_order_release);
}

int OffloadedWindow::end_flush(offpath_status_t status) {
  settle_staged(status == OFFPATH_OK);
  end_followed();
  return code_of(status);
}

int OffloadedWindow::flush_served() {
  const uint64_t through = offpath_window_issued(data_);
  offpath_status_t status = offpath_window_flush_test(data_);
  if (status == OFFPATH_IN_PROGRESS) {
    wait_until("flush", [&] {
      status = offpath_window_flush_test(data_);
      return status != OFFPATH_IN_PROGRESS || offpath_window_completed(data_) >= through;
    });
  }
  // Then only what other threads posted meanwhile is under way.
  if (status == OFFPATH_IN_PROGRESS) status = OFFPATH_OK;
  if (homecoming_ != nullptr) {
    if (over() < through) wait_until("flush", [&] { return over() >= through; });
    const bool may_ask = requests_.load(std::memory_order_acquire) > 0 || any_followed_.load(std::memory_order_acquire);
    const offpath_status_t failure = homecoming_->take_failure(through, may_ask);
    if (status == OFFPATH_OK) status = failure;
  }
  return end_flush(status);
}

void OffloadedWindow::finish_requests() {
  wait_until("finish requests", [this] { return requests_.load(std::memory_order_acquire) == 0; });
}

void OffloadedWindow::part() {
  if (homecoming_ == nullptr) return handshake_.barrier();
  // Who has turned says so before it comes here, and nobody turns by itself later: with none, none will hear of it.
  int64_t turned = homecoming_->stay() ? 1 : 0;
  handshake_.sum(&turned, 1);
  if (turned == 0) return;
  homecoming_->turn_now();
  wait_until("hear all members", [this] { return homecoming_->has_heard_all(); });
  handshake_.barrier();
}

int OffloadedWindow::flush(int target) {
  if (mixture_ == nullptr || mixture_->idle()) return flush_served();
  const uint64_t entered_ns = base::clock_ns();
  const int natively = mixture_->flush(target);  // the service works meanwhile
  const int served = flush_served();
  mixture_->completed(entered_ns, quiet());
  return served == MPI_SUCCESS ? natively : served;
}

int OffloadedWindow::flush_local(int target) {
  const uint64_t through = unsent_.load(std::memory_order_acquire);
  if (over() < through || any_staged_.load(std::memory_order_acquire)) return flush(target);
  if (mixture_ == nullptr || mixture_->idle()) return MPI_SUCCESS;
  const uint64_t entered_ns = base::clock_ns();
  // osc/pt2pt's flush_local does not wait for gets.
  const int natively = mixture_->flush(target);
  mixture_->completed(entered_ns, quiet());
  return natively;
}

int OffloadedWindow::code_of(offpath_status_t status) const {
  if (status == OFFPATH_OK) return MPI_SUCCESS;
  if (!team_.service->alive()) job.report_lost_service();
  if (const Parting parting = team_.service->parting()) job.report_parting(parting, true, Job::kWindowsOnly);
  return offloader.errors().code_for(status);
}

bool OffloadedWindow::lost() const {
  const bool turned = homecoming_ != nullptr && homecoming_->has_turned();
  return turned || !team_.service->alive() || team_.service->parting();
}

int OffloadedWindow::raise(const char* call, int code) const {
  if (code == MPI_SUCCESS) return code;
  const MPI_Win win = handle();
  if (win == MPI_WIN_NULL) return raise_error(MPI_COMM_WORLD, code);
  native.Win_call_errhandler(win, ends_the_job(win) ? offloader.errors().naming(call, code) : code);
  return code;
}

}  // namespace offpath::mpi
