// SPDX-License-Identifier: BSD-3-Clause
// offpathd: the service. Started by the first client of a job on a node, which gives it a listening socket and the
// job's token; can also be started by hand for a look at its options.
#include "agent/agent.hpp"
#include "base/environment.hpp"
#include "base/log.hpp"
#include "base/quiet_thread.hpp"
#include "base/result.hpp"
#include "device/probe.hpp"
#include "seal/job_key.hpp"
#include "service/command_line.hpp"
#include "service/device_service.hpp"
#include "service/for_agents.hpp"
#include "service/placement.hpp"
#include "service/service.hpp"
#include "session/abandoned.hpp"
#include "session/dpus.hpp"
#include "session/reception.hpp"
#include "session/replacement.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace {

using offpath::base::Environment;
using offpath::base::Status;

constexpr const char* kSecret = "OFFPATH_JOB_SECRET";

Status read_token(int fd, uint8_t (&token)[OFFPATH_TOKEN_BYTES]) {
  size_t used = 0;
  while (used < sizeof(token)) {
    const ssize_t got = read(fd, token + used, sizeof(token) - used);
    if (got <= 0) return Status::error(OFFPATH_ERR_ARGUMENT, "no job token on descriptor %d", fd);
    used += static_cast<size_t>(got);
  }
  return {};
}

// What services prove to each other.
Status find_key(const uint8_t (&token)[OFFPATH_TOKEN_BYTES], offpath::fabric::JobKey& out) {
  offpath::seal::Key given;
  std::copy(std::begin(token), std::end(token), given.begin());
  const auto key = offpath::seal::job_key(given, Environment::text(kSecret));
  if (key.ok()) out = key.value();
  return key.status();
}

// Each client needs some descriptors, and nothing here uses select().
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// It holds the job's token and maps its clients' memory: no core file has them, and no other process of the user looks into
// them. `starts_nothing_else`: what it starts is ours, so that it never needs rights that this process has not.
void contain(bool starts_nothing_else) {
  prctl(PR_SET_DUMPABLE, 0);
  if (starts_nothing_else) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

// Schedulers send them to every process of a job, to tell its program that time is up or that it is to save its state.
// That program still communicates then; the service ends when its clients do.
void leave_signals_to_the_program() {
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU}) {
    signal(number, SIG_IGN);
  }
  signal(SIGXFSZ, SIG_IGN);  // a file that may not be so long is an error of the program's transfer
}

// What runs that were killed on this node have left in working directories. Nobody waits for it: the file systems that those
// are on may be slow, or hang. If we end before it does, the next service goes on with it.
void remove_abandoned_folders_beside(const std::string& socket_path) {
  const std::string folder = socket_path.substr(0, socket_path.rfind('/'));
  if (socket_path.empty() || !offpath::session::has_records(folder)) return;
  try {
    offpath::base::quiet_thread([folder] { offpath::session::remove_abandoned_folders(folder); }).detach();
  } catch (const std::system_error&) {
    offpath::base::log_write(offpath::base::LogLevel::info, "no thread for what killed runs have left");
  }
}

// The service's log, where one is asked for.
Status open_log() {
  const bool debug = Environment::text("OFFPATH_SERVICE_LOG_LEVEL") == "debug";
  const std::string path = Environment::text("OFFPATH_SERVICE_LOG");
  using offpath::base::LogLevel;
  if (offpath::base::log_open(path.c_str(), debug ? LogLevel::debug : LogLevel::info)) return {};
  return Status::error(OFFPATH_ERR_ARGUMENT, "cannot write the service's log '%.100s'. Correct OFFPATH_SERVICE_LOG",
                       path.c_str());
}

// The device service: on the given descriptor, or on a TCP port for clients that know the key.
int serve_devices(const offpath::service::CommandLine& asked) {
  offpath::service::DeviceServiceOptions options = asked.devices;
  options.cores = asked.service.cores;
  options.shares_cores = asked.service.shares_cores;
  options.socket_path = asked.socket_path;
  const std::string& address = asked.address;
  offpath::base::Fd socket(asked.listening);
  Status status;
  if (!asked.key_file.empty()) {
    auto key = offpath::device::read_key(asked.key_file);
    status = key.status();
    if (status.ok()) options.key = key.value();
  }
  if (status.ok() && !address.empty() && !options.key && !options.munge) {
    status =
        Status::error(OFFPATH_ERR_ARGUMENT, "nobody could use it (who asks is not known). Give --key-file or --munge");
  }
  if (status.ok() && options.munge && geteuid() != 0) {
    status =
        Status::error(OFFPATH_ERR_ARGUMENT, "--munge is for root (jobs run as their users). Give --key-file instead");
  }
  offpath::service::DeviceService service(std::move(options));
  if (status.ok()) status = service.start();
  if (status.ok() && !address.empty()) {  // last: who sees it listen takes it for started
    auto opened = offpath::service::DeviceService::listen_on(address);
    status = opened.status();
    if (status.ok()) socket = std::move(opened.value());
  }
  if (!status.ok()) {
    fprintf(stderr, "offpathd: %s\n", status.text());
    offpath::base::log_write(offpath::base::LogLevel::error, "%s", status.text());
    if (!asked.socket_path.empty()) unlink(asked.socket_path.c_str());
    return 1;
  }
  service.serve(socket.get());
  return 0;
}

int check_dpu(const std::string& dpu) {
  const int timeout_ms = static_cast<int>(Environment::number("OFFPATH_DEVICE_TIMEOUT_MS", 10000, 1, 600000));
  const auto found = offpath::device::probe(dpu, timeout_ms);
  if (!found.ok()) {
    fprintf(stderr, "offpathd: %s\n", found.status().text());
    return 1;
  }
  puts(found.value().c_str());
  return 0;
}

int start_timeout_ms() {
  return static_cast<int>(Environment::number("OFFPATH_SERVICE_START_TIMEOUT_MS", 10000, 1, 600000));
}

int print_for_agents(const offpath::service::ServiceOptions& service, Status status) {
  offpath::service::ForAgentsOptions options;
  options.executor = service.tasks.executors.command;
  options.cores = service.cores.empty() ? Environment::text("OFFPATH_SERVICE_CORES") : service.cores;
  options.shares_cores = service.shares_cores;
  options.timeout_ms = start_timeout_ms();
  unsetenv(kSecret);  // an agent's token is made of it already
  if (status.ok()) status = read_token(STDIN_FILENO, options.token);
  if (status.ok()) status = Environment::problem();
  const auto reached = status.ok() ? reach_for_agent(options) : status;
  if (!reached.ok()) {
    fprintf(stderr, "offpathd: %s\n", reached.status().text());
    return 1;
  }
  printf("%s\n", to_line(reached.value()).c_str());
  return 0;
}

int serve_as_agent(const offpath::service::ServiceOptions& service, int listening, Status status) {
  offpath::agent::AgentOptions options;
  const auto dpus = offpath::session::own_dpus();
  if (status.ok()) status = dpus.status();
  if (dpus.ok()) options.dpus = dpus.value();
  options.settle = [cores = service.cores] {
    [[maybe_unused]] const Status bound = offpath::service::bind_this_thread(cores);  // the agent's says what is wrong
    offpath::service::ask_for_short_slices();
  };
  options.socket = service.socket;
  options.replacement = service.replacement;
  options.start_timeout_ms = start_timeout_ms() * 3 / 4;  // so that there is time to say why not
  std::copy(std::begin(service.token), std::end(service.token), options.token);
  options.key = service.key;
  const offpath::session::OwnSocketName socket = options.socket;
  offpath::agent::Agent agent(std::move(options));
  if (status.ok()) status = offpath::service::bind_this_thread(service.cores);
  if (status.ok()) status = agent.start();
  if (!status.ok()) {
    offpath::base::log_write(offpath::base::LogLevel::error, "%s", status.text());
    offpath::session::refuse_all(listening, status);
    socket.remove();
    return 1;
  }
  offpath::service::ask_for_short_slices();
  leave_signals_to_the_program();  // not before: the commands that were run would, too
  remove_abandoned_folders_beside(socket.path());
  agent.serve(listening);
  return 0;
}

int serve_clients(offpath::service::ServiceOptions options, int listening, Status status) {
  const offpath::session::OwnSocketName socket = options.socket;
  offpath::service::Service service(std::move(options));
  if (status.ok()) status = service.start();
  if (!status.ok()) {
    fprintf(stderr, "offpathd: %s\n", status.text());
    offpath::base::log_write(offpath::base::LogLevel::error, "%s", status.text());
    offpath::session::refuse_all(listening, status);
    socket.remove();
    return 1;
  }
  remove_abandoned_folders_beside(socket.path());
  service.serve(listening);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  offpath::service::CommandLine asked;
  if (const auto status = read_command_line(argc, argv, asked)) return *status;
  signal(SIGPIPE, SIG_IGN);
  if (asked.probed) {
    offpath::device::serve_probe_by_command();
    return 0;
  }
  if (!asked.dpu.empty()) return check_dpu(asked.dpu);
  offpath::service::ServiceOptions& options = asked.service;
  read_environment(options);
  Status status = open_log();
  if (status.ok() && (asked.serves_devices || !asked.address.empty())) {
    if (asked.token_fd >= 0) close(asked.token_fd);
    return serve_devices(asked);
  }
  options.socket = offpath::session::OwnSocketName(asked.listening, asked.socket_path);
  leave_signals_to_the_program();
  raise_descriptor_limit();
  if (asked.for_agents) return print_for_agents(options, status);
  if (status.ok()) status = read_token(asked.token_fd, options.token);
  if (status.ok()) status = find_key(options.token, options.key);
  if (status.ok()) status = Environment::problem();
  close(asked.token_fd);
  // ssh to a DPU, or a container's starter, may be setuid programs.
  contain(!asked.is_agent && asked.devices.executor.empty());
  return asked.is_agent ? serve_as_agent(options, asked.listening, status)
                        : serve_clients(std::move(options), asked.listening, status);
}
