// SPDX-License-Identifier: BSD-3-Clause
#include "service/tasks/tasks.hpp"

#include "base/clock.hpp"
#include "base/log.hpp"

namespace offpath::service {

using base::Status;
using tasks::EntryKind;
using tasks::State;
using tasks::Task;

namespace {
constexpr int kLookIntervalMs = 5;
constexpr int kExecutorsLookMs = Executors::kLookNs / 1000000;
}  // namespace

Tasks::Tasks(const Options& options, int bell, std::function<void()> wake, std::function<void(int, uint32_t)> watch,
             OnEnd on_end)
    : options_(options), bell_(bell), watch_(std::move(watch)), on_end_(std::move(on_end)), copies_(std::move(wake)) {}

Status Tasks::open() {
  if (shop_ != nullptr) {
    if (is_open()) return {};
    return Status::error(OFFPATH_ERR_NO_SERVICE,
                         "all executors of tasks have ended without running one. See the service's log");
  }
  auto board = tasks::Board::create(options_.room_bytes, options_.executors.count);
  if (!board.ok()) return board.status();
  auto shop = std::make_unique<Shop>(std::move(board.value()), options_.executors, bell_);
  if (!shop->entries.fit())
    return Status::error(OFFPATH_ERR_NO_MEMORY, "no room for tasks. Raise OFFPATH_TASK_ROOM_BYTES");
  if (const Status status = shop->executors.start_all(); !status.ok()) return status;
  shop_ = std::move(shop);
  for (uint32_t number = 0; number < executors(); ++number) watch_(shop_->executors.ended_fd(number), number);
  base::log_write(base::LogLevel::info, "%u executor(s) of tasks", executors());
  return {};
}

Job& Tasks::add(uint64_t client, uint32_t slot, Task task, EntryKind kind, uint64_t guest) {
  std::unique_ptr<Job> owned(new Job{client, slot, kind, std::move(task), guest, next_serial_++});
  Job& job = *owned;
  (client != 0 ? jobs_[name_of(client, slot)] : left_[job.serial]) = std::move(owned);
  if (job.is_timed()) ++timed_;
  return job;
}

void Tasks::queue(Job& job) {
  job.stage = Stage::queued;
  queued_.insert({job.key(), &job});
}

Status Tasks::register_function(uint64_t client, uint32_t slot, const Home& home, tasks::Function function) {
  if (const Status status = open(); !status.ok()) return status;
  if (homes_.emplace(client, home).second && home.bytes > 0)
    shop_->executors.add_client(client, home.file->get(), home.bytes);
  const auto number = shop_->functions.number_of(std::move(function));
  if (!number.ok()) return number.status();
  Task load;
  load.function = number.value();
  load.priority = INT32_MAX;
  queue(add(client, slot, std::move(load), EntryKind::load));
  return {};
}

Status Tasks::submit(uint64_t client, uint32_t slot, Task task) {
  if (!knows(client) || !shop_->functions.knows(task.function))
    return Status::error(OFFPATH_ERR_ARGUMENT, "a task names function %u, which is not registered", task.function);
  if (const Status status = open(); !status.ok()) return status;
  queue(add(client, slot, std::move(task)));
  ++counts_.submitted;
  return {};
}

void Tasks::cancel(uint64_t client, uint32_t slot) {
  const auto found = jobs_.find(name_of(client, slot));
  if (found != jobs_.end()) stop(*found->second, Status::error(OFFPATH_ERR_CANCELLED, "the task was cancelled"));
}

void Tasks::stop(Job& job, const Status& why) {
  if (job.stage == Stage::queued || job.stage == Stage::copied || job.stage == Stage::away) return end(job, {why});
  if (job.stage == Stage::copied_in) {  // it ends when nothing of it is copied any more
    job.end = {why};
    return copies_.stop(job.copy);
  }
  if (job.stage != Stage::posted || job.taken_away || job.kill_at_ns != 0) return;
  shop_->entries.of(job).cancelled.store(1, std::memory_order_release);
  if (shop_->entries.state_of(job) == State::ready) return take_away(job, why);
  if (!job.is_timed()) ++timed_;
  job.kill_at_ns = base::clock_ns() + options_.cancel_ns;
}

void Tasks::disown(Job& job) {
  auto owned = jobs_.extract(name_of(job.client, job.slot));
  job.client = 0;
  left_[job.serial] = std::move(owned.mapped());
}

void Tasks::remove_client(uint64_t client) {
  if (homes_.erase(client) == 0) return;
  std::vector<uint32_t> slots;
  for (const auto& [name, job] : jobs_) {
    if (job->client == client) slots.push_back(job->slot);
  }
  for (const uint32_t slot : slots) {
    cancel(client, slot);
    const auto found = jobs_.find(name_of(client, slot));
    if (found == jobs_.end()) continue;
    Job& job = *found->second;  // it runs, or something of it is copied
    disown(job);
    if (job.copy != 0) copies_.stop(job.copy);
  }
  shop_->room.remove_client(client);
  shop_->executors.remove_client(client);
}

bool Tasks::progress() {
  if (shop_ == nullptr) return false;
  bool any = collect();
  any |= feed();
  any |= copies_.progress();
  any |= post_copied();
  shop_->entries.wake_executors();
  if (timed_ > 0) look_at_clock();
  if (any_on_board()) look_at_executors();
  return any;
}

// Last: the slot may be used again then, and the job has gone.
void Tasks::end(Job& job, TaskEnd result) {
  queued_.erase({job.key(), &job});
  if (job.is_timed()) --timed_;
  if (job.stage == Stage::copied) std::erase(copied_, &job);
  leave_board(job);
  give_up_away(job);
  const uint64_t client = job.client, guest = job.guest;
  const uint32_t slot = job.slot;
  if (job.is_own_task()) ++(result.status.ok() ? counts_.done : counts_.failed);
  const auto gone = client == 0 ? left_.extract(job.serial) : jobs_.extract(name_of(client, slot));
  if (guest != 0) mover_->on_guest_ended(guest, result);
  if (client != 0) on_end_(client, slot, result);
}

void Tasks::give_up_away(Job& job) {
  if (job.away == 0) return;
  away_.erase(job.away);
  mover_->on_over(std::exchange(job.away, 0));
}

void Tasks::leave_board(Job& job) {
  shop_->entries.release(job);
  for (const Room::Piece& piece : job.pieces) shop_->room.release(piece);
  job.pieces.clear();
}

bool Tasks::announce_sleep() {
  if (shop_ == nullptr) return false;
  const tasks::Board& board = shop_->room.board();
  board.header().worker_sleeps.store(1, std::memory_order_seq_cst);
  return board.header().finished.load(std::memory_order_seq_cst) != 0 || copies_.pending() ||
         (!copied_.empty() && board.has_room()) || (!queued_.empty() && !any_on_board());
}

void Tasks::note_awake() {
  if (shop_ != nullptr) shop_->room.board().header().worker_sleeps.store(0, std::memory_order_relaxed);
}

// Executors do not ring when they have made room in the ring.
int Tasks::timeout_ms() const {
  const bool waits_for_room =
      shop_ != nullptr && !(queued_.empty() && copied_.empty()) && !shop_->room.board().has_room();
  return timed_ > 0 || waits_for_room ? kLookIntervalMs : any_on_board() ? kExecutorsLookMs : -1;
}

}  // namespace offpath::service
