// SPDX-License-Identifier: BSD-3-Clause
// AgentDoor: where one agent reaches one worker of this service, and the clients that it brings there. The worker owns the door
// and lets it take and give in each of its rounds, so nothing of a link passes another thread; but other workers may ask
// for memory by its ports. Clients come, leave and are lost as those on sockets do: the door has the other end of each.
//
// It is over when the link is lost or nobody came. Then its clients count as served no more, as those of a lost service.
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

#include <functional>
#include <map>
#include <memory>

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
  uint32_t worker = UINT32_MAX;            // that is to serve it, if there is no choice
};

class AgentDoor : public agent::LinkOwner {
 public:
  using Run = std::function<void(std::function<void()>)>;

  struct Options {
    uint32_t worker = 0;
    int first_message_timeout_ms = 30000;
    uint64_t silence_ns = 0;
    std::function<void()> wake;  // the worker, from any thread
    // What an observer of the clients that have this outbox is to see (wire::EntryKind::seen); the worker's thread.
    std::function<std::vector<uint8_t>(const Outbox&)> show;
  };

  // `run` has something done on the service's thread, soon; that is where `admit` is called.
  AgentDoor(Options options, std::unique_ptr<fabric::Fabric> endpoint, Run run, std::function<void(Newcomer)> admit);
  // Closes it.
  ~AgentDoor() override;

  // The rest on the worker's thread. What has come over the link. Whether there was anything.
  bool take();
  // What is to be said to the agent leaves.
  bool give();
  bool is_over() const { return link_.lost() || nobody_came_; }
  // Before sleeping, false: there is something to do. How long it may last at most, in ms; -1: for ever. Meanwhile it
  // asks the agent for a sign of life now and then: clients that wait notice its silence, but those of others do not.
  bool arm() { return link_.fabric().arm(); }
  int until_look();
  // Readable when there is something to take; when look() has something to do.
  int link_fd() { return link_.fabric().event_fd(); }
  int clients_fd() const { return epoll_.get(); }
  void look();

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
  void take_outbox();
  void attach(uint32_t number, fabric::Bytes body);
  void take_submission(Client& client, fabric::Bytes body);
  void on_readable(uint32_t number);
  void refuse(uint32_t number, const base::Status& status);

  const Options options_;
  const uint64_t began_ns_;
  bool nobody_came_ = false;
  base::Silence silence_;
  const uint64_t look_every_ns_;  // after the agent; 0: never
  uint64_t looked_ns_ = 0;
  bool answered_ = false;
  bool silent_ = false;
  const Run run_;
  const std::function<void(Newcomer)> admit_;
  const std::shared_ptr<Outbox> outbox_;
  const std::shared_ptr<agent::FarMemory> memory_;
  base::Fd epoll_;  // of the sockets of clients
  std::map<uint32_t, Client> clients_;
  agent::Link link_;
};

}  // namespace offpath::service
