// SPDX-License-Identifier: BSD-3-Clause
// What only agents do: several hosts that share a DPU, several DPUs of a host, and what is left when one of them ends.
#include "watcher.hpp"

#include "session/link.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

namespace offpath::testing {
namespace {

// The service for agents in that folder; without process ids of its own, so that the test can find and end it.
std::string dpu_in(const std::string& folder) {
  return "exec:OFFPATH_RUNTIME_DIR=" + folder + " " OFFPATH_TEST_SERVICE " --for-agents";
}

void kill_dpu(Job& job, offpath_session_t* session) {
  const pid_t agent = service_of(session);
  for (const pid_t service : job.services()) {
    if (service != agent) kill(service, SIGKILL);
  }
}

void alltoall(Process& p, offpath_team_t* team, size_t bytes) {
  std::vector<uint8_t> send(bytes * p.size), recv(bytes * p.size);
  for (uint32_t i = 0; i < p.size; ++i) memset(&send[i * bytes], static_cast<int>(p.rank * 16 + i), bytes);
  p.complete([&](auto op) { return offpath_alltoall(team, send.data(), recv.data(), bytes, op); });
  for (uint32_t i = 0; i < p.size; ++i) {
    for (size_t at = i * bytes; at < (i + 1) * bytes; ++at) REQUIRE(recv[at] == i * 16 + p.rank);
  }
}

// Blocks of members of one service, which none of them can reach.
TEST(Agents, OfSeveralHostsShareAService) {
  for (const char* workers : {"1", "2"}) {
    Job job(4, 2);
    const std::string dpu = job.folder(0) + "-dpu";
    job.set("OFFPATH_SERVICE_WORKERS", workers).set("OFFPATH_DPU", dpu_in(dpu));
    job.run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
      for (const size_t bytes : {size_t{1}, size_t{3000}, size_t{300000}}) alltoall(p, team, bytes);
    });
    EXPECT_TRUE(eventually([&] { return files_in(dpu).empty(); })) << "the service ends with its last agent";
  }
}

TEST(Agents, DealTheirClientsOutToSeveralDpus) {
  Job job(5, 1);
  const std::string one = job.folder(0) + "-one", two = job.folder(0) + "-two";
  job.run([&](Process& p) {
    setenv("OFFPATH_DPU", (dpu_in(one) + "," + dpu_in(two)).c_str(), 1);
    offpath_attach_params_t params = p.params();
    params.flags = OFFPATH_ATTACH_NODE_ONLY;  // of what it knows of
    offpath_session_t* session = nullptr;
    REQUIRE_STATUS(offpath_session_attach(&params, &session, nullptr), OFFPATH_OK);
    p.exchange(session);
    offpath_team_t* team = p.make_team(session);
    REQUIRE(offpath_team_nodes(team) == 2);
    alltoall(p, team, 5000);
    REQUIRE(job.services().size() == 3);
    p.barrier();
    offpath_session_detach(session);
  });
}

// To the clients it is their service that was lost.
TEST(Agents, AServiceThatEndsIsLost) {
  Job job(2, 1);
  job.set("OFFPATH_DPU", dpu_in(job.folder(0) + "-dpu"));
  job.run_in_team([&](Process& p, offpath_session_t* session, offpath_team_t* team) {
    alltoall(p, team, 100);
    p.barrier();
    if (p.rank == 0) kill_dpu(job, session);
    REQUIRE(eventually([&] { return offpath_session_alive(session) == 0; }));
    REQUIRE(offpath_team_broken(team) == 1);
  });
  std::filesystem::remove_all(job.folder(0) + "-dpu");  // its socket is left, as after any crash
}

// A page for each worker of each DPU, and of their clients those of this host.
TEST(Agents, AreWatchedAsTheirServices) {
  for (const bool shared : {false, true}) {
    Job job(4, 2);
    job.run([&](Process& p) {
      const std::string one = (shared ? job.folder(0) : p.folder) + "-one", two = p.folder + "-two";
      setenv("OFFPATH_DPU", (dpu_in(one) + (shared ? "" : "," + dpu_in(two))).c_str(), 1);
      setenv("OFFPATH_SERVICE_WORKERS", "2", 1);
      offpath_session_t* session = nullptr;
      offpath_team_t* team = p.join(session);
      alltoall(p, team, 5000);
      p.barrier();
      const Watcher watcher(p);
      REQUIRE_STATUS(static_cast<offpath_status_t>(watcher.reply.status), OFFPATH_OK);
      REQUIRE(watcher.reply.process == service_of(session) && watcher.header().process == watcher.reply.process);
      REQUIRE(watcher.header().worker_count == (shared ? 2 : 4));
      std::map<uint64_t, pid_t> seen;  // by id
      std::set<uint32_t> ranks;
      REQUIRE(eventually([&] {
        seen.clear();
        for (uint32_t page = 0; page < watcher.header().worker_count; ++page) {
          for (uint32_t i = 0; i < watcher.page(page).worker.clients.load(); ++i) {
            const session::ClientRecord& client = watcher.page(page).clients[i];
            if (client.done.load() != 1) continue;
            seen[client.id.load()] = static_cast<pid_t>(client.process.load());
            ranks.insert(client.rank.load());
          }
        }
        return seen.size() == 2;
      }));
      REQUIRE(std::any_of(seen.begin(), seen.end(), [](const auto& client) { return client.second == getpid(); }));
      REQUIRE(ranks.size() == 2 && ranks.contains(p.rank));
      p.barrier();
      offpath_session_detach(session);
    });
  }
}

// What was there before stays, but for the clients.
TEST(Agents, AreWatchedWhileTheirServiceIsLost) {
  Job job(2, 1);
  job.run([&](Process& p) {
    setenv("OFFPATH_DPU", dpu_in(job.folder(0) + "-dpu").c_str(), 1);
    offpath_session_t* session = nullptr;
    offpath_team_t* team = p.join(session);
    alltoall(p, team, 100);
    const Watcher watcher(p);
    REQUIRE(eventually([&] { return watcher.page().worker.clients.load() == 2; }));
    p.barrier();
    if (p.rank == 0) kill_dpu(job, session);
    REQUIRE(eventually([&] { return watcher.page().worker.clients.load() == 0; }));
    uint8_t byte;
    REQUIRE(recv(watcher.socket.get(), &byte, 1, 0) == 0);  // the agent ends, as it has no clients
    offpath_session_detach(session);
  });
  std::filesystem::remove_all(job.folder(0) + "-dpu");  // its socket is left, as after any crash
}

// Each of these would cost seconds, and with many of them the test would not end in time.
TEST(Agents, AreNotHeldUpByWhoeverSaysNothing) {
  Job job(1);
  const std::string dpu = job.folder(0) + "-dpu";
  job.set("OFFPATH_DPU", dpu_in(dpu));
  job.run_in_team([&](Process& p, offpath_session_t*, offpath_team_t* team) {
    std::vector<base::Fd> silent(100);
    const std::string path = session::socket_path(p.folder, p.shared.token);
    for (base::Fd& each : silent) each = std::move(session::connect_to(path).value());
    for (int i = 0; i < 1200; ++i) alltoall(p, team, 8);
    silent.clear();
  });
}

// At once: a launcher may kill what its job has left running.
TEST(Agents, LeaveNothingBehindTheirLastClient) {
  Job(2).run([](Process& p) {
    setenv("OFFPATH_DPU", dpu_in(p.folder + "-dpu").c_str(), 1);
    offpath_session_t* session = p.attach();
    p.barrier();
    if (p.rank == 1) offpath_session_detach(session);
    p.barrier();
    if (p.rank == 1) return;
    REQUIRE(files_in(p.folder).size() == 1);
    offpath_session_detach(session);
    REQUIRE(files_in(p.folder).empty());
  });
}

TEST(Agents, WithoutADpuSayWhy) {
  Job(1).run([](Process& p) {
    setenv("OFFPATH_DPU", "exec:echo no such machine", 1);
    const offpath_attach_params_t params = p.params();
    offpath_session_t* session = nullptr;
    offpath_error_t error{};
    REQUIRE_STATUS(offpath_session_attach(&params, &session, &error), OFFPATH_ERR_NO_SERVICE);
    REQUIRE(strstr(error.text, "no such machine") != nullptr);
  });
}

}  // namespace
}  // namespace offpath::testing
