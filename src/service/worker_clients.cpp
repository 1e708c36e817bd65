// SPDX-License-Identifier: BSD-3-Clause
// What a worker hears from its clients, and what it tells them of their operations.
#include "service/worker.hpp"

#include "base/log.hpp"
#include "base/passing.hpp"
#include "session/link.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace offpath::service {

using engine::ClientId;

void Worker::read_socket(ClientId id) {
  ServedClient* const client = served(id);
  if (client == nullptr) return;
  session::FileMessage message{};
  base::Fd passed;
  const ssize_t got =
      base::receive_passing(client->socket(), &message, sizeof(message), {&passed, 1}, MSG_DONTWAIT).bytes;
  const uint8_t byte = message.word;
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got == 1 && byte == session::kDoorbell) return;
  if (got == sizeof(message) && byte == session::kFile) return client->take_file(message.number, std::move(passed));
  take_submissions();
  const Departure how = got != 1                         ? Departure::died
                        : byte == session::kDetach       ? Departure::detached
                        : byte == session::kHostIsLost   ? Departure::lost
                        : byte == session::kHostIsSilent ? Departure::silent
                                                         : Departure::died;
  if (served(id) != nullptr) drop_client(id, how);
}

void Worker::drop_client(ClientId id, Departure how) {
  base::log_write(base::LogLevel::info, "client %llu %s", static_cast<unsigned long long>(id),
                  how == Departure::detached ? "detached"
                  : how == Departure::lost   ? "is lost with its host's agent"
                  : how == Departure::silent ? "is lost, as its host's agent is silent"
                                             : "is gone without detaching");
  auto client = std::move(clients_.at(id));
  clients_.erase(id);
  engine_->remove_client(id, how == Departure::lost     ? engine::Loss::host
                             : how == Departure::silent ? engine::Loss::silence
                                                        : engine::Loss::process);
  target_.remove_client(id);
  balancer_.remove_client(id);
  tasks_to_run_.remove_client(id);
  owner_.on_gone();
  if (how == Departure::detached) [[maybe_unused]]
    const auto status = session::send_message(client->socket(), &session::kDetached, 1);
}

void Worker::show_use() {
  run([this] {
    in_use_ = true;
    for (auto& [id, client] : clients_) client->show_use();
  });
}

void Worker::leave() {
  run([this] {
    for (auto& [id, client] : clients_) client->leave();
  });
}

void Worker::on_first_byte(ClientId client, uint64_t operation) {
  if (Balancer::owns(operation)) return;
  if (ServedClient* const known = served(client)) known->on_first_byte(operation);
}

void Worker::on_arrived(ClientId client, uint64_t operation) {
  if (Balancer::owns(operation)) return;
  if (ServedClient* const known = served(client)) known->on_arrived(operation);
}

void Worker::on_step(ClientId client, uint64_t operation, uint32_t peer, uint64_t bytes, bool local) {
  if (Balancer::owns(operation)) return;
  if (ServedClient* const known = served(client)) known->on_step(operation, peer, bytes, local);
}

void Worker::on_served(ClientId client, uint64_t operation, uint32_t peer, uint64_t bytes, bool local) {
  if (Balancer::owns(operation)) return;
  if (ServedClient* const known = served(client)) known->on_served(operation, peer, bytes, local);
}

void Worker::on_sampled(ClientId client, const codecs::Chooser::Sampled& sampled) {
  if (ServedClient* const known = served(client)) known->on_sampled(sampled);
}

void Worker::on_coded(ClientId client, const engine::Coded& coded) {
  if (ServedClient* const known = served(client)) known->on_coded(coded);
}

void Worker::on_finished(ClientId client, uint64_t operation, base::Status status) {
  if (Balancer::owns(operation)) return balancer_.on_finished(operation, status);
  if (ServedClient* const known = served(client)) known->on_finished(operation, status);
}

void Worker::on_member_lost(ClientId client, uint64_t team, uint32_t rank, engine::Loss how) {
  target_.lose_member(client, team, rank, how != engine::Loss::process);
  balancer_.lose_member(client, team, rank);
  if (ServedClient* const known = served(client)) known->on_member_lost(team, rank, how);
}

}  // namespace offpath::service
