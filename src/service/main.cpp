// SPDX-License-Identifier: BSD-3-Clause
// offpathd: the service. Started by the first client of a job on a node, which gives it a listening socket and the
// job's token; can also be started by hand for a look at its options.
#include "agent/agent.hpp"
#include "arguments/arguments.hpp"
#include "base/environment.hpp"
#include "base/log.hpp"
#include "base/quiet_thread.hpp"
#include "base/result.hpp"
#include "base/silence.hpp"
#include "device/probe.hpp"
#include "seal/job_key.hpp"
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
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace {

using offpath::base::Environment;
using offpath::base::Status;

constexpr uint64_t kSharedCoalesceUs = 4000;
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

// The device service: on the given descriptor, or on a TCP port for clients that know the key.
int serve_devices(offpath::service::DeviceServiceOptions options, int listening, const std::string& address,
                  const std::string& key_file) {
  offpath::base::Fd socket(listening);
  Status status;
  if (!key_file.empty()) {
    auto key = offpath::device::read_key(key_file);
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
  const std::string socket_path = options.socket_path;
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
    if (!socket_path.empty()) unlink(socket_path.c_str());
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
  options.executor = service.tasks.executor;
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

}  // namespace

static offpath::codecs::Wish wanted_compression() {
  const std::string text = Environment::text("OFFPATH_COMPRESS");
  const auto wish = offpath::codecs::parse_wish(text.empty() ? "off" : text);
  if (wish.ok()) return wish.value();
  Environment::refuse("OFFPATH_COMPRESS", text, offpath::codecs::known_wishes().c_str());
  return {};
}

static offpath::service::Balancer::Mode wanted_balance() {
  using Mode = offpath::service::Balancer::Mode;
  const std::string text = Environment::text("OFFPATH_TASK_BALANCE");
  if (text.empty() || text == "on") return Mode::on;
  if (text == "off") return Mode::off;
  if (text == "always") return Mode::always;
  Environment::refuse("OFFPATH_TASK_BALANCE", text, "one of on, off, always");
  return Mode::on;
}

int main(int argc, char** argv) {
  offpath::service::ServiceOptions options;
  options.replacement.emplace(argc, argv);
  int listening = -1;
  int token_fd = -1;
  bool devices = false, is_agent = false, for_agents = false;
  std::string address, key_file, socket_path;
  offpath::service::DeviceServiceOptions device_options;
  bool probed = false;
  std::string dpu;
  arguments::Arguments app("offpathd",
                           "Offpath's service: moves communication for the processes of one job on this node.\n"
                           "Clients start it by themselves; see 'offpath run --help'.");
  app.version("offpathd " OFFPATH_VERSION);
  app.number("--listen-fd", listening, 0, INT_MAX, "descriptor of a listening Unix socket (SOCK_SEQPACKET)");
  app.number("--token-fd", token_fd, 0, INT_MAX, "descriptor to read the job's token from");
  app.text("--socket-path", socket_path, "path of that socket; removed at the end");
  app.text("--cores", options.cores, "cores for the workers, and one helper per core left, e.g. 2,3 or 4-7");
  app.flag("--share", options.shares_cores, "these cores also run the application: never spin");
  app.flag("--devices", devices, "start executors for target regions, instead of moving communication");
  app.flag("--agent", is_agent, "serve as the agent of the service on the DPU that OFFPATH_DPU names");
  app.flag("--for-agents", for_agents,
           "find or start the service of the job whose token comes on standard input, for an agent on another "
           "machine, and print where it is");
  app.text("--listen", address, "HOST:PORT: start executors for clients that connect there, until SIGTERM");
  app.text("--key-file", key_file, "what these clients must know, at least 16 bytes");
  app.flag("--munge", device_options.munge,
           "start the services of jobs for all users whom MUNGE names, each as that user; needs root");
  app.text("--executor", device_options.executor,
           "command that runs regions and tasks, as where the processor is emulated; default: offpath-executor "
           "beside this program");
  app.text("--for-agents-command", device_options.for_agents,
           "command that finds or starts the service of a job for its agents; default: this program's --for-agents");
  app.flag("--probe", probed, "answer on standard input and output what this machine and the way to it are like");
  app.text("--check-dpu", dpu, "ask a DPU, HOST:PORT or exec:COMMAND, for that, and print it as JSON");
  app.number("--max-clients", device_options.max_clients, 1, 4096, "programs, and jobs, served at a time");
  app.number("--memory", device_options.memory_bytes, 0, arguments::kUnlimited,
             "bytes that one program can map; default: half of the machine's");
  for (const char* name : {"--token-fd", "--devices", "--agent"}) app.needs(name, "--listen-fd");
  for (const char* name : {"--key-file", "--munge", "--for-agents-command"}) app.needs(name, "--listen");
  for (const char* name : {"--for-agents", "--listen"}) app.excludes(name, "--listen-fd");
  if (const auto status = app.done(argc, argv)) return *status;
  if (argc == 1) {
    fputs("offpathd: nothing is asked for (programs start it themselves). Use --help to see the options\n", stderr);
    return 2;
  }

  signal(SIGPIPE, SIG_IGN);
  if (probed) {
    offpath::device::serve_probe_by_command();
    return 0;
  }
  if (!dpu.empty()) return check_dpu(dpu);
  options.workers = static_cast<uint32_t>(Environment::number("OFFPATH_SERVICE_WORKERS", 1, 1, 64));
  options.engine.chunk_bytes =
      Environment::number("OFFPATH_FABRIC_CHUNK_BYTES", options.engine.chunk_bytes, 4096, 16 << 20);
  options.engine.chunks_in_flight = static_cast<uint32_t>(
      Environment::number("OFFPATH_FABRIC_CHUNKS_IN_FLIGHT", options.engine.chunks_in_flight, 1, 64));
  options.fabric = Environment::text("OFFPATH_FABRIC");
  options.engine.compress = wanted_compression();
  options.engine.multicast_rate = Environment::number("OFFPATH_MULTICAST_RATE", 0, 0, uint64_t{1} << 44) / 8;
  options.engine.multicast_chains = static_cast<uint32_t>(Environment::number("OFFPATH_MULTICAST_CHAINS", 0, 0, 64));
  options.engine.silence_ns = offpath::base::silence_limit_ns();
  options.coalesce = std::chrono::microseconds(
      Environment::number("OFFPATH_SERVICE_COALESCE_US", options.shares_cores ? kSharedCoalesceUs : 0, 0, 100000));
  options.tasks.executor = device_options.executor;
  options.tasks.executors = static_cast<uint32_t>(Environment::number("OFFPATH_TASK_EXECUTORS", 0, 0, 64));
  options.tasks.room_bytes =
      Environment::number("OFFPATH_TASK_ROOM_BYTES", options.tasks.room_bytes, 8 << 20, uint64_t{1} << 44);
  options.tasks.memory_bytes = Environment::number("OFFPATH_TASK_MEMORY_BYTES", 0, 0, uint64_t{1} << 46);
  options.balance = wanted_balance();
  options.tasks.cancel_ns = Environment::number("OFFPATH_TASK_CANCEL_MS", 1000, 0, 3600000) * 1000000;
  const std::string level = Environment::text("OFFPATH_SERVICE_LOG_LEVEL");
  const auto log_level = level == "debug" ? offpath::base::LogLevel::debug : offpath::base::LogLevel::info;
  const std::string log_path = Environment::text("OFFPATH_SERVICE_LOG");
  Status status;
  if (!offpath::base::log_open(log_path.c_str(), log_level)) {
    status = Status::error(OFFPATH_ERR_ARGUMENT, "cannot write the service's log '%.100s'. Correct OFFPATH_SERVICE_LOG",
                           log_path.c_str());
  }
  if (status.ok() && (devices || !address.empty())) {
    if (token_fd >= 0) close(token_fd);
    device_options.cores = options.cores;
    device_options.shares_cores = options.shares_cores;
    device_options.socket_path = socket_path;
    return serve_devices(std::move(device_options), listening, address, key_file);
  }
  options.socket = offpath::session::OwnSocketName(listening, socket_path);
  leave_signals_to_the_program();
  raise_descriptor_limit();
  if (for_agents) return print_for_agents(options, status);
  if (status.ok()) status = read_token(token_fd, options.token);
  if (status.ok()) status = find_key(options.token, options.key);
  if (status.ok()) status = Environment::problem();
  close(token_fd);
  contain(!is_agent &&
          device_options.executor.empty());  // ssh to a DPU, or a container's starter, may be setuid programs
  if (is_agent) return serve_as_agent(options, listening, status);

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
