// SPDX-License-Identifier: BSD-3-Clause
// Attaching where something is short: descriptors, address space, answers. An error with the reason, or less; no hang.
#include "job.hpp"

#include "session/link.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <set>

namespace offpath::testing {
namespace {

// The error's text; empty: it is attached.
std::string try_attach(const Process& p, offpath_session_t*& session, uint32_t flags = 0) {
  offpath_attach_params_t params = p.params();
  params.flags = flags;
  offpath_error_t error{};
  const offpath_status_t status = offpath_session_attach(&params, &session, &error);
  if (status == OFFPATH_OK) return "";
  REQUIRE(status == OFFPATH_ERR_NO_SERVICE);
  return error.text;
}

void require_text(const std::string& text, const char* part) {
  if (text.find(part) == std::string::npos) fail_process(__FILE__, __LINE__, "'" + text + "' lacks " + part);
}

TEST(Limits, TheServiceTakesAsManyDescriptorsAsItMay) {
  Job(8)
      .set("OFFPATH_SERVICE_WRAPPER", "/usr/bin/prlimit --nofile=16:1024")
      .run_attached([](Process&, offpath_session_t*) {});
}

TEST(Limits, WithoutADescriptorClientsAreRefusedAndToldWhy) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer needs descriptors of its own to start; the build without it runs this";
#endif
  Job(8).run([](Process& p) {
    setenv("OFFPATH_SERVICE_WRAPPER", "/usr/bin/prlimit --nofile=16:16", 1);
    offpath_session_t* session = nullptr;
    const std::string text = try_attach(p, session, OFFPATH_ATTACH_NODE_ONLY);
    if (!text.empty()) require_text(text, "ulimit -n");
    p.shared.value[p.rank] = text.empty() ? 1 : 2;
    p.barrier();
    offpath_session_detach(session);
    std::set<int64_t> seen;
    for (uint32_t rank = 0; rank < p.size; ++rank) seen.insert(p.shared.value[rank]);
    REQUIRE(seen.contains(2));
  });
}

// Three times half of a process's address space.
TEST(Limits, SharedMemoryThatDoesNotFitIsLeftOut) {
  Job(3).set("OFFPATH_SHARED_MEMORY_BYTES", "70368744177664").run_attached([](Process&, offpath_session_t*) {});
}

TEST(Limits, AServiceThatNeverAnswersIsOneTimeoutForAllAndIsEnded) {
  Job(4).run([](Process& p) {
    setenv("OFFPATH_SERVICE_WRAPPER", "/usr/bin/tail -f /dev/null --", 1);
    setenv("OFFPATH_SERVICE_START_TIMEOUT_MS", "1000", 1);
    offpath_session_t* session = nullptr;
    const std::string text = try_attach(p, session);
    // Whoever looks when another has just ended it, or is about to, finds it gone, or that one at it.
    REQUIRE(!text.empty());
    p.shared.value[p.rank] = text.find("does not answer") == std::string::npos ? 1 : 2;
    p.barrier();
    std::set<int64_t> seen;
    for (uint32_t rank = 0; rank < p.size; ++rank) seen.insert(p.shared.value[rank]);
    REQUIRE(seen.contains(2));
  });
}

TEST(Limits, AFolderThatStaysLockedIsAnError) {
  Job(1).run([](Process& p) {
    REQUIRE(mkdir(p.folder.c_str(), 0700) == 0);
    const auto lock = session::lock_folder(p.folder, 1);
    REQUIRE(lock.ok());
    setenv("OFFPATH_SERVICE_START_TIMEOUT_MS", "200", 1);
    offpath_session_t* session = nullptr;
    require_text(try_attach(p, session), "lock");
  });
}

// ---- who could talk to the service --------------------------------------------------------------------------------

// Sockets of the process, by inode, as the tables in /proc/net name them.
std::set<std::string> sockets_of(pid_t process) {
  std::set<std::string> out;
  const std::string folder = "/proc/" + std::to_string(process) + "/fd/";
  for (const std::string& name : files_in(folder)) {
    char target[64] = "";
    if (readlink((folder + name).c_str(), target, sizeof(target) - 1) <= 0) continue;
    if (strncmp(target, "socket:[", 8) == 0) out.insert(std::string(target + 8, strlen(target) - 9));
  }
  return out;
}

// Lines of the table with one of the sockets in the given column.
std::vector<std::string> lines_of(const char* table, size_t column, const std::set<std::string>& sockets) {
  std::vector<std::string> out;
  std::ifstream file(std::string("/proc/net/") + table);
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> words;
    for (char* word = strtok(line.data(), " "); word != nullptr; word = strtok(nullptr, " ")) words.emplace_back(word);
    if (words.size() > column && sockets.contains(words[column])) out.push_back(words[column - 2] + " " + words.back());
  }
  return out;
}

void check_sockets(pid_t service, bool alone) {
  const std::set<std::string> sockets = sockets_of(service);
  REQUIRE(!sockets.empty());
  for (const char* table : {"udp", "udp6", "raw", "raw6"}) REQUIRE(lines_of(table, 9, sockets).empty());
  for (const char* table : {"tcp", "tcp6"}) REQUIRE(!alone || lines_of(table, 9, sockets).empty());
  const auto local = lines_of("unix", 6, sockets);
  REQUIRE(!local.empty());
  for (const std::string& line : local) {
    if (line.substr(0, 5) != "0005 ") fail_process(__FILE__, __LINE__, "not a SOCK_SEQPACKET: " + line);
  }
}

TEST(Doors, AServiceOfOneNodeHasOneForItsClientsAlone) {
  Job(1).run([](Process& p) {
    unsetenv("OFFPATH_UCX_TLS");
    unsetenv("OFFPATH_UCX_NET_DEVICES");
    offpath_session_t* session = nullptr;
    REQUIRE(try_attach(p, session, OFFPATH_ATTACH_NODE_ONLY).empty());
    check_sockets(service_of(session), true);
    p.exchange(session);
    offpath_team_t* team = p.make_team(session);
    uint8_t send[8] = {1}, recv[8] = {};
    p.complete([&](auto op) { return offpath_alltoall(team, send, recv, 8, op); });
    check_sockets(service_of(session), true);
    offpath_session_detach(session);
  });
}

TEST(Doors, AServiceOfManyNodesTakesNoDatagrams) {
  Job(1).run([](Process& p) {
    unsetenv("OFFPATH_UCX_NET_DEVICES");
    for (const char* transports : {"none: another fabric", "", "all", "tcp,sm,self", "^rc"}) {
      setenv("OFFPATH_FABRIC", *transports == 'n' ? "tcp" : "ucx", 1);
      unsetenv("OFFPATH_UCX_TLS");
      *transports == '\0' ? unsetenv("UCX_TLS") : setenv("UCX_TLS", transports, 1);
      offpath_session_t* session = p.attach();
      const pid_t service = service_of(session);
      check_sockets(service, false);
      offpath_session_detach(session);
      REQUIRE(eventually([&] { return kill(service, 0) != 0; }));
    }
  });
}

}  // namespace
}  // namespace offpath::testing
