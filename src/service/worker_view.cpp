// SPDX-License-Identifier: BSD-3-Clause
// A worker as observers see it, and what its clients are charged.
#include "base/clock.hpp"
#include "service/worker.hpp"

namespace offpath::service {

void Worker::publish(session::WorkerPage& page) {
  if (to_publish_.exchange(true)) return;
  run([this, &page] {
    to_publish_ = false;
    session::rewrite(page, [&] { fill_page(page, nullptr); });
  });
}

std::vector<uint8_t> Worker::show_to(const Outbox& door) const {
  const auto page = std::make_unique<session::WorkerPage>();
  fill_page(*page, &door);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(page.get());
  return {bytes, reinterpret_cast<const uint8_t*>(page->clients + page->worker.clients.load())};
}

// All clients, or those of a door alone.
void Worker::fill_page(session::WorkerPage& page, const Outbox* door) const {
  const auto set = [](auto& field, uint64_t value) {
    using Value = decltype(field.load());
    field.store(static_cast<Value>(value), std::memory_order_relaxed);
  };
  session::WorkerRecord& record = page.worker;
  set(record.updated_ns, base::clock_ns());
  set(record.cpu_ns, base::clock_ns(CLOCK_THREAD_CPUTIME_ID));
  set(record.wakeups, wakeups_);
  set(record.sent_bytes, engine_->traffic().sent_bytes);
  set(record.received_bytes, engine_->traffic().received_bytes);
  set(record.local_bytes, engine_->traffic().local_bytes);
  set(record.refused, engine_->refused_count());
  const TaskCounts& tasks = tasks_to_run_.counts();
  set(record.tasks_submitted, tasks.submitted);
  set(record.tasks_done, tasks.done + tasks.failed);
  set(record.tasks_failed, tasks.failed);
  set(record.tasks_run_ns, tasks.run_ns);
  set(record.tasks_moved, tasks.moved);
  set(record.tasks_returned, tasks.returned);
  set(record.tasks_rerun, tasks.rerun);
  const fabric::Connection wires = fabric_->connections();
  set(record.connections, wires.count);
  set(record.segments_sent, wires.sent);
  set(record.segments_resent, wires.resent);
  set(record.segments_disordered, wires.disordered);
  set(record.sending_ns, wires.busy_us * 1000);
  set(record.no_room_ns, wires.room_us * 1000);
  set(record.round_trip_ns, wires.round_us * 1000);
  set(record.window_bytes, engine_->window());
  uint32_t count = 0, left_out = 0;
  for (const auto& [id, client] : clients_) {
    const auto number = door == nullptr ? std::nullopt : client->number_at(*door);
    if (door != nullptr && !number) continue;
    if (count == session::kObservedClients) {
      ++left_out;
      continue;
    }
    session::ClientRecord& shown = page.clients[count++];
    client->show(shown);
    if (number) set(shown.id, *number);
  }
  set(record.clients, count);
  set(record.left_out, left_out);
}

// Of a service beside its clients they see the processor time themselves.
void Worker::charge() {
  if (doors_.empty() && tasks_to_run_.executors() == 0 && charges_.timeout_ms() < 0) return;
  const uint64_t now_ns = base::clock_ns();
  if (!charges_.is_due(now_ns)) return;
  Charges::Spent spent;
  spent.executors_ns = tasks_to_run_.executors_cpu_ns();
  spent.process_ns = doors_.empty() ? 0 : base::clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  spent.clients = static_cast<uint32_t>(clients_.size());
  if (options_.all_clients != nullptr) spent.all_clients = *options_.all_clients;
  const Charges::Share share = charges_.take(now_ns, spent);
  for (auto& [id, client] : clients_) client->charge(share);
}

}  // namespace offpath::service
