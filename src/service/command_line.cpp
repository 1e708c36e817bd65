// SPDX-License-Identifier: BSD-3-Clause
#include "service/command_line.hpp"

#include "arguments/arguments.hpp"
#include "base/environment.hpp"
#include "base/silence.hpp"

#include <chrono>
#include <climits>
#include <cstdio>

namespace offpath::service {
namespace {

using base::Environment;

// Longest pause between looks at the fabric where ranks may want the core.
constexpr std::chrono::microseconds kSharedCoalesce{4000};

codecs::Wish wanted_compression() {
  const std::string text = Environment::text("OFFPATH_COMPRESS");
  const auto wish = codecs::parse_wish(text.empty() ? "off" : text);
  if (wish.ok()) return wish.value();
  Environment::refuse("OFFPATH_COMPRESS", text, codecs::known_wishes().c_str());
  return {};
}

Balancer::Mode wanted_balance() {
  using Mode = Balancer::Mode;
  const std::string text = Environment::text("OFFPATH_TASK_BALANCE");
  if (text.empty() || text == "on") return Mode::on;
  if (text == "off") return Mode::off;
  if (text == "always") return Mode::always;
  Environment::refuse("OFFPATH_TASK_BALANCE", text, "one of on, off, always");
  return Mode::on;
}

}  // namespace

std::optional<int> read_command_line(int argc, char** argv, CommandLine& out) {
  arguments::Arguments app("offpathd",
                           "Offpath's service: moves communication for the processes of one job on this node.\n"
                           "Clients start it by themselves; see 'offpath run --help'.");
  app.version("offpathd " OFFPATH_VERSION);
  app.number("--listen-fd", out.listening, 0, INT_MAX, "descriptor of a listening Unix socket (SOCK_SEQPACKET)");
  app.number("--token-fd", out.token_fd, 0, INT_MAX, "descriptor to read the job's token from");
  app.text("--socket-path", out.socket_path, "path of that socket; removed at the end");
  app.text("--cores", out.service.cores, "cores for the workers, and one helper per core left, e.g. 2,3 or 4-7");
  app.flag("--share", out.service.shares_cores, "these cores also run the application: never spin");
  app.flag("--devices", out.serves_devices, "start executors for target regions, instead of moving communication");
  app.flag("--agent", out.is_agent, "serve as the agent of the service on the DPU that OFFPATH_DPU names");
  app.flag("--for-agents", out.for_agents,
           "find or start the service of the job whose token comes on standard input, for an agent on another "
           "machine, and print where it is");
  app.text("--listen", out.address, "HOST:PORT: start executors for clients that connect there, until SIGTERM");
  app.text("--key-file", out.key_file, "what these clients must know, at least 16 bytes");
  app.flag("--munge", out.devices.munge,
           "start the services of jobs for all users whom MUNGE names, each as that user; needs root");
  app.text("--executor", out.devices.executor,
           "command that runs regions and tasks, as where the processor is emulated; default: offpath-executor "
           "beside this program");
  app.text("--for-agents-command", out.devices.for_agents,
           "command that finds or starts the service of a job for its agents; default: this program's --for-agents");
  app.flag("--probe", out.probed, "answer on standard input and output what this machine and the way to it are like");
  app.text("--check-dpu", out.dpu, "ask a DPU, HOST:PORT or exec:COMMAND, for that, and print it as JSON");
  app.number("--max-clients", out.devices.max_clients, 1, 4096, "programs, and jobs, served at a time");
  app.number("--memory", out.devices.memory_bytes, 0, arguments::kUnlimited,
             "bytes that one program can map; default: half of the machine's");
  for (const char* name : {"--token-fd", "--devices", "--agent"}) app.needs(name, "--listen-fd");
  for (const char* name : {"--key-file", "--munge", "--for-agents-command"}) app.needs(name, "--listen");
  for (const char* name : {"--for-agents", "--listen"}) app.excludes(name, "--listen-fd");
  if (const auto status = app.done(argc, argv)) return status;
  if (argc == 1) {
    fputs("offpathd: nothing is asked for (programs start it themselves). Use --help to see the options\n", stderr);
    return 2;
  }
  out.service.replacement.emplace(argc, argv);
  out.service.tasks.executors.command = out.devices.executor;
  return std::nullopt;
}

void read_environment(ServiceOptions& out) {
  out.workers = static_cast<uint32_t>(Environment::number("OFFPATH_SERVICE_WORKERS", 1, 1, 64));
  out.engine.chunk_bytes = Environment::number("OFFPATH_FABRIC_CHUNK_BYTES", out.engine.chunk_bytes, 4096, 16 << 20);
  out.fabric = Environment::text("OFFPATH_FABRIC");
  out.engine.compress = wanted_compression();
  out.engine.multicast_rate = Environment::number("OFFPATH_MULTICAST_RATE", 0, 0, uint64_t{1} << 44) / 8;
  out.engine.multicast_chains = static_cast<uint32_t>(Environment::number("OFFPATH_MULTICAST_CHAINS", 0, 0, 64));
  out.engine.silence_ns = base::silence_limit_ns();
  if (out.shares_cores) out.coalesce = kSharedCoalesce;
  out.tasks.executors.count = static_cast<uint32_t>(Environment::number("OFFPATH_TASK_EXECUTORS", 0, 0, 64));
  out.tasks.room_bytes =
      Environment::number("OFFPATH_TASK_ROOM_BYTES", out.tasks.room_bytes, 8 << 20, uint64_t{1} << 44);
  out.tasks.executors.memory_bytes = Environment::number("OFFPATH_TASK_MEMORY_BYTES", 0, 0, uint64_t{1} << 46);
  out.balance = wanted_balance();
  out.tasks.cancel_ns = Environment::number("OFFPATH_TASK_CANCEL_MS", 1000, 0, 3600000) * 1000000;
}

}  // namespace offpath::service
