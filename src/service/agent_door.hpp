// SPDX-License-Identifier: BSD-3-Clause
// AgentDoor: where one agent reaches this service, and the clients that it brings. To the rest of the service these are
// clients on sockets like others: the door has the other end of each, and passes on what agent and worker say. Its thread
// moves what goes over the link; the workers ask for it by the ports and the outbox.
//
// It has ended when the link is lost or nobody came. Then its clients count as served no more, as those of a lost service.
#pragma once

#include "agent/far_memory.hpp"
#include "agent/link.hpp"
#include "agent/mirror.hpp"
#include "base/fd.hpp"
#include "base/silence.hpp"
#include "memory/aliases.hpp"
#include "service/outbox.hpp"
#include "service/reflection.hpp"
#include "session/segment_view.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

namespace offpath::service {

// A client that was found to be one.
struct Newcomer {
  base::Fd socket, alive;
  pid_t process = 0;
  uint32_t flags = 0;  // session::AttachRequest
  session::SegmentView view;
  std::shared_ptr<memory::Port> memory;
  std::shared_ptr<memory::Aliases> aliases;
  std::unique_ptr<Reflection> reflection;  // null: of this machine
};

class AgentDoor : public agent::LinkOwner {
 public:
  using Run = std::function<void(std::function<void()>)>;

  // `run` has something done on the service's thread, soon; that is where `admit` is called.
  AgentDoor(std::unique_ptr<fabric::Fabric> endpoint, std::string cores, int first_message_timeout_ms,
            uint64_t silence_ns, Run run, std::function<void(Newcomer)> admit);
  ~AgentDoor() override;
  bool has_ended() const { return ended_; }

  // LinkOwner
  agent::Place place_for(const wire::LinkMessage& message, size_t bytes) override;
  void on_message(const wire::LinkMessage& message, fabric::Bytes payload) override;
  void on_entry(const wire::LinkEntry& entry) override;
  void on_sent(uint64_t number) override;
  void on_lost(const char* why) override;

 private:
  struct Client {
    base::Fd socket;
    std::shared_ptr<agent::Mirror> mirror;
  };
  void loop();
  bool work();
  void sleep(int timeout_ms);
  // Asks the agent for a sign of life now and then: clients that wait notice its silence, but those of others do not. How
  // long until the next look, in ms; -1: there is none.
  int until_look();
  void attach(uint32_t number, fabric::Bytes body);
  void take_submission(Client& client, fabric::Bytes body);
  static void ring(Client& client);
  void on_readable(uint32_t number);
  void refuse(uint32_t number, const base::Status& status);

  const std::string cores_;
  const int first_message_timeout_ms_;
  base::Silence silence_;
  const uint64_t look_every_ns_;  // after the agent; 0: never
  uint64_t looked_ns_ = 0;
  bool answered_ = false;
  const Run run_;
  const std::function<void(Newcomer)> admit_;
  const std::shared_ptr<Outbox> outbox_;
  const std::shared_ptr<agent::FarMemory> memory_;
  base::Fd epoll_;
  std::map<uint32_t, Client> clients_;
  agent::Link link_;
  std::atomic<bool> stopping_{false}, ended_{false};
  std::thread thread_;
};

}  // namespace offpath::service
