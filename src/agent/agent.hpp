// SPDX-License-Identifier: BSD-3-Clause
// Agent: what clients take for their service where that is on a DPU, another machine (docs/design/0020-dpu-agent.md). It
// has the socket, maps the segments, and decides nothing: what clients submit goes over a link, what the service has
// written comes back, and the service reaches clients' memory through it. One thread.
//
// Nothing here is a new state for a client: a link that is lost closes the sockets of its clients, an agent that does not
// answer is ended by them, as any service. To each worker of a DPU's service there is a link.
#pragma once

#include "agent/host_link.hpp"
#include "base/nudge.hpp"
#include "fabric/factory.hpp"
#include "session/observers.hpp"
#include "session/reception.hpp"
#include "session/replacement.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace offpath::agent {

struct AgentOptions {
  std::string dpus;                         // OFFPATH_DPU
  session::OwnSocketName socket;            // removed at the end
  uint8_t token[OFFPATH_TOKEN_BYTES] = {};  // of clients
  fabric::JobKey key{};                     // of services; those on DPUs have it as their token
  int start_timeout_ms = 10000;             // of all DPUs together
  int first_client_timeout_ms = 30000;
  std::function<void()> settle = [] {};             // has a thread run where the agent's does
  std::optional<session::Replacement> replacement;  // nothing: none can take its place
};

class Agent {
 public:
  explicit Agent(AgentOptions options);

  // Finds the services on the DPUs and connects to them.
  base::Status start();
  // Serves on the listening socket until the last client has gone.
  void serve(int listening);

 private:
  // Takes in who has spoken. Whether it was a client, admitted or not.
  bool greet(session::Caller caller);
  base::Status attach(session::Caller& caller);
  // Another agent takes its place, if one can. That takes as long as reaching the DPUs, so another thread waits for it.
  void be_replaced(session::Caller caller);
  void leave();
  base::Result<std::unique_ptr<HostLink>> connect(const std::vector<uint8_t>& address);
  HostLink* next_link();
  size_t clients_count() const;
  void remove_socket();
  // Until there is something to do. Whether somebody comes.
  bool sleep(int timeout_ms);
  void show_the_end();
  bool may_stand_still() const;

  AgentOptions options_;
  fabric::Made fabric_{};
  std::vector<std::unique_ptr<HostLink>> links_;
  size_t dpus_count_ = 0;
  size_t next_ = 0;  // clients are dealt out in turn
  bool socket_removed_ = false;
  bool leaves_ = false;  // another one is in its place
  std::thread replacing_;
  std::atomic<bool> is_replacing_{false}, is_replaced_{false};
  session::LocalLobby lobby_;
  base::Fd epoll_;
  base::Fd alarm_;  // is_replaced_ has changed
  base::Nudge nudge_;
  std::optional<session::Observers> observers_;  // from start() on, when it is known how many links there are
};

}  // namespace offpath::agent
