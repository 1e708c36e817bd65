// SPDX-License-Identifier: BSD-3-Clause
// A worker as observers see it.
#include "base/clock.hpp"
#include "service/worker.hpp"

namespace offpath::service {

void Worker::publish(session::WorkerPage& page) {
  if (to_publish_.exchange(true)) return;
  run([this, &page] {
    to_publish_ = false;
    write_page(page);
  });
}

void Worker::write_page(session::WorkerPage& page) const {
  const auto set = [](auto& field, uint64_t value) {
    using Value = decltype(field.load());
    field.store(static_cast<Value>(value), std::memory_order_relaxed);
  };
  session::WorkerRecord& record = page.worker;
  const uint64_t generation = record.generation.load(std::memory_order_relaxed);
  record.generation.store(generation + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  set(record.updated_ns, base::clock_ns());
  set(record.cpu_ns, base::clock_ns(CLOCK_THREAD_CPUTIME_ID));
  set(record.wakeups, wakeups_);
  set(record.sent_bytes, engine_->traffic().sent_bytes);
  set(record.received_bytes, engine_->traffic().received_bytes);
  set(record.local_bytes, engine_->traffic().local_bytes);
  set(record.refused, engine_->refused_count());
  const TaskCounts tasks = tasks_to_run_.counts();
  set(record.tasks_submitted, tasks.submitted);
  set(record.tasks_done, tasks.done + tasks.failed);
  set(record.tasks_failed, tasks.failed);
  set(record.tasks_run_ns, tasks.run_ns);
  set(record.tasks_moved, tasks.moved);
  set(record.tasks_returned, tasks.returned);
  set(record.tasks_rerun, tasks.rerun);
  uint32_t count = 0;
  for (const auto& [id, client] : clients_) {
    if (count == session::kObservedClients) break;
    client->show(page.clients[count++]);
  }
  set(record.clients, count);
  set(record.left_out, clients_.size() - count);
  record.generation.store(generation + 2, std::memory_order_release);
}

}  // namespace offpath::service
