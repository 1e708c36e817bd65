// SPDX-License-Identifier: BSD-3-Clause
// Device service: starts an executor for each program that asks for one, hands the connection on to it, reaps it. No
// user code and no data of programs in here. For agents it starts the services of jobs (starting.hpp). Two kinds of listeners: the node's Unix socket (the service ends with its
// last executor) and a TCP port (it stays until SIGTERM). One thread. Who connects to the port has two seconds to prove the
// key, few at a time, and no process before.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "base/silence.hpp"
#include "device/introduction.hpp"
#include "session/lobby.hpp"

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

namespace offpath::service {

struct DeviceServiceOptions {
  std::string cores;          // of the executors; empty: wherever the system likes
  std::string executor;       // words; empty: offpath-executor beside this program. Services of jobs are given it
  std::string for_agents;     // words of the command that finds or starts a job's service; empty: this program
  bool shares_cores = false;  // with programs: executors never spin
  uint32_t max_clients = 64;
  uint64_t memory_bytes = 0;       // most that one program can map; 0: half of the machine's
  std::string socket_path;         // removed at the end
  std::optional<device::Key> key;  // TCP: what clients must know, or ...
  bool munge = false;              // ... that MUNGE names them
  int first_client_timeout_ms = 30000;
};

class DeviceService {
 public:
  explicit DeviceService(DeviceServiceOptions options);
  // A listening TCP socket on HOST:PORT.
  static base::Result<base::Fd> listen_on(const std::string& address);
  // Binds to the cores, finds the executor.
  base::Status start();
  // Serves until SIGTERM or, on a Unix socket, until the last executor has ended.
  void serve(int listening);

  static constexpr uint64_t kStoppedNs = 2000000000;  // so long an executor may be stopped by a signal

 private:
  struct Child {
    pid_t process;
    base::Fd alive;  // readable when it has ended
    bool waited = false;
    base::Silence stillness{kStoppedNs};
    bool has_credential = false;  // is to be found out whom MUNGE names; it becomes no executor
  };
  using Lobby = session::Lobby<device::Introduction>;
  bool takes_strangers() const { return options_.key || options_.munge; }
  int wait_ms(bool had_client) const;
  size_t credentials_count() const;
  bool hear(Lobby::Guest& guest);
  // A process for it. `who`: null on a Unix socket.
  void start_child(base::Fd socket, device::Introduction* who);
  void become_executor(int socket, device::Introduction* who, bool full);
  base::Status admit(int socket, device::Introduction* who, bool full, std::vector<std::string>& words);
  [[noreturn]] void answer(int socket, device::Introduction& who);
  void hear_signals(bool& ends);
  bool end_stopped();
  void reap(std::list<Child>::iterator child);

  DeviceServiceOptions options_;
  std::vector<std::string> executor_, for_agents_;
  std::vector<std::string> environment_;  // in the child: its client's
  std::list<Child> children_;
  Lobby lobby_;
};

}  // namespace offpath::service
