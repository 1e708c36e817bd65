// SPDX-License-Identifier: BSD-3-Clause
// Sessions: starting, finding, sharing, refusing and ending the service.
#include "job.hpp"

#include "base/fd.hpp"
#include "base/memfd.hpp"
#include "session/layout.hpp"
#include "session/link.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

namespace offpath::testing {
namespace {

// Attaching must fail like this, with a text that helps.
void refuse(const Process& p, offpath_status_t expected, const char* helpful) {
  const offpath_attach_params_t params = p.params();
  offpath_session_t* session = nullptr;
  offpath_error_t error{};
  errno = 42;
  REQUIRE_STATUS(offpath_session_attach(&params, &session, &error), expected);
  REQUIRE(errno == 42 && session == nullptr && error.status == expected);
  if (strstr(error.text, helpful) == nullptr) fail_process(__FILE__, __LINE__, error.text);
  REQUIRE_STATUS(offpath_session_attach(&params, &session, nullptr), expected);
}

std::string socket_of(const Process& p) { return session::socket_path(p.folder, p.shared.token); }

TEST(Session, AttachStartsTheServiceAndDetachEndsIt) {
  Job job(1);
  job.run([&](Process& p) {
    errno = 42;
    offpath_session_t* session = p.attach();
    REQUIRE(errno == 42);
    REQUIRE(offpath_session_alive(session) == 1);
    const offpath_session_counters_t counters = counters_of(session);
    const auto service = static_cast<pid_t>(counters.service_pid);
    REQUIRE(service > 0 && kill(service, 0) == 0);
    REQUIRE(job.services() == std::vector<pid_t>{service});
    REQUIRE(counters.posted_count == 0 && counters.completed_count == 0 && counters.failed_count == 0);
    REQUIRE(counters.service_clients_count == 1 && counters.service_workers_count == 1);
    REQUIRE(counters.service_cpu_ns > 0);
    REQUIRE(exists(socket_of(p)));
    offpath_session_detach(session);
    // At once: a launcher may kill what its job has left running.
    REQUIRE(!exists(socket_of(p)) && files_in(p.folder).empty());
    REQUIRE(eventually([&] { return kill(service, 0) != 0; }));
  });
}

// Nor does it get what the program writes to them all the same.
TEST(Session, StandardDescriptorsThatAreClosedStayClosed) {
  Job(1).run([](Process& p) {
    for (int fd = 0; fd <= STDERR_FILENO; ++fd) close(fd);
    offpath_session_t* sessions[] = {p.attach(), p.attach()};
    void* lent = nullptr;
    REQUIRE_STATUS(offpath_memory_lend(sessions[0], 4096, 0, &lent), OFFPATH_OK);
    for (int fd = 0; fd <= STDERR_FILENO; ++fd) REQUIRE(write(fd, "text", 4) < 0 && errno == EBADF);
    for (offpath_session_t* session : sessions) {
      REQUIRE(offpath_session_alive(session) == 1);
      offpath_session_detach(session);
    }
  });
}

TEST(Session, AddressIsTheSameEveryTimeAndBounded) {
  Job(1).run_attached([](Process&, offpath_session_t* session) {
    uint8_t one[OFFPATH_ADDRESS_MAX_BYTES], two[OFFPATH_ADDRESS_MAX_BYTES];
    size_t bytes = 0, again = 0;
    REQUIRE_STATUS(offpath_session_address(session, one, sizeof(one), &bytes), OFFPATH_OK);
    REQUIRE_STATUS(offpath_session_address(session, two, bytes, &again), OFFPATH_OK);
    REQUIRE(bytes == again && memcmp(one, two, bytes) == 0);
    REQUIRE_STATUS(offpath_session_address(session, two, bytes - 1, &again), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_session_address(session, nullptr, sizeof(two), &again), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_session_address(session, two, sizeof(two), nullptr), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_session_address(nullptr, two, sizeof(two), &again), OFFPATH_ERR_ARGUMENT);
  });
}

TEST(Session, WrongArgumentsAreRefused) {
  Job(1).run([](Process& p) {
    offpath_attach_params_t params = p.params();
    offpath_session_t* session = nullptr;
    offpath_error_t error{};
    REQUIRE_STATUS(offpath_session_attach(nullptr, &session, &error), OFFPATH_ERR_ARGUMENT);
    REQUIRE(error.status == OFFPATH_ERR_ARGUMENT && error.text[0] != '\0');
    REQUIRE_STATUS(offpath_session_attach(&params, nullptr, nullptr), OFFPATH_ERR_ARGUMENT);
    for (const uint32_t bytes :
         {0U, static_cast<uint32_t>(sizeof(params)) - 1, static_cast<uint32_t>(sizeof(params)) + 8, UINT32_MAX}) {
      params.struct_bytes = bytes;
      REQUIRE_STATUS(offpath_session_attach(&params, &session, &error), OFFPATH_ERR_ARGUMENT);
    }
    params = p.params();
    params.flags = 2;
    REQUIRE_STATUS(offpath_session_attach(&params, &session, &error), OFFPATH_ERR_ARGUMENT);
    session = p.attach();
    offpath_session_counters_t counters{};
    REQUIRE_STATUS(offpath_session_counters(session, &counters), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_session_counters(session, nullptr), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_session_counters(nullptr, &counters), OFFPATH_ERR_ARGUMENT);
    REQUIRE(offpath_session_alive(nullptr) == 0);
    offpath_session_detach(session);
    offpath_session_detach(nullptr);
  });
}

TEST(Session, ProcessesOfAJobShareOneService) {
  Job job(8);
  job.run([&](Process& p) {
    offpath_session_t* session = p.attach();
    p.shared.value[p.rank] = counters_of(session).service_pid;
    p.barrier();
    for (uint32_t i = 0; i < p.size; ++i) REQUIRE(p.shared.value[i] == p.shared.value[0]);
    REQUIRE(job.services().size() == 1);
    p.barrier();
    if (p.rank > 0) offpath_session_detach(session);
    p.barrier();
    if (p.rank > 0) return;
    REQUIRE(offpath_session_alive(session) == 1);
    offpath_session_detach(session);
  });
}

TEST(Session, JobsDoNotShareAService) {
  Job job(1);
  job.run([&](Process& p) {
    offpath_session_t* first = p.attach();
    offpath_session_t* second = p.attach();
    REQUIRE(job.services().size() == 1);
    p.shared.token[0] ^= 1;
    offpath_session_t* other = p.attach();
    REQUIRE(job.services().size() == 2);
    REQUIRE(counters_of(first).service_pid == counters_of(second).service_pid);
    REQUIRE(counters_of(first).service_pid != counters_of(other).service_pid);
    for (offpath_session_t* session : {first, second, other}) offpath_session_detach(session);
  });
}

TEST(Session, ComesAndGoesManyTimes) {
  Job(4).run([](Process& p) {
    for (int i = 0; i < 15; ++i) offpath_session_detach(p.attach());
  });
}

TEST(Session, NoServiceToStartIsAnError) {
  Job(1).run([](Process& p) {
    setenv("OFFPATH_SERVICE_PATH", "/nonexistent", 1);
    refuse(p, OFFPATH_ERR_NO_SERVICE, "OFFPATH_SERVICE_PATH");
    REQUIRE(files_in(p.folder).empty());
  });
}

TEST(Session, AServiceThatLeavesAtOnceIsAnError) {
  Job(1).run([](Process& p) {
    setenv("OFFPATH_SERVICE_PATH", "/bin/true", 1);
    setenv("OFFPATH_SERVICE_START_TIMEOUT_MS", "2000", 1);
    refuse(p, OFFPATH_ERR_NO_SERVICE, "");
    REQUIRE(files_in(p.folder).empty());
  });
}

TEST(Session, AServiceThatCannotStartSaysWhy) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer does not survive UCX's hook in a thread that ends";
#endif
  Job(1).run([](Process& p) {
    setenv("OFFPATH_SERVICE_CORES", "4711", 1);
    const offpath_attach_params_t params = p.params();
    offpath_session_t* session = nullptr;
    offpath_error_t error{};
    const offpath_status_t status = offpath_session_attach(&params, &session, &error);
    REQUIRE(status == OFFPATH_ERR_NO_SERVICE || status == OFFPATH_ERR_ARGUMENT);
    REQUIRE(strstr(error.text, "4711") != nullptr);
  });
}

TEST(Session, BadServiceVariableIsNamed) {
  Job(1).run([](Process& p) {
    setenv("OFFPATH_FABRIC_CHUNK_BYTES", "huge", 1);
    const offpath_attach_params_t params = p.params();
    offpath_session_t* session = nullptr;
    offpath_error_t error{};
    const offpath_status_t status = offpath_session_attach(&params, &session, &error);
    if (status == OFFPATH_OK) return offpath_session_detach(session);  // the default is used: fine too
    if (strstr(error.text, "OFFPATH_FABRIC_CHUNK_BYTES") == nullptr) fail_process(__FILE__, __LINE__, error.text);
  });
}

TEST(Session, UnknownFabricIsNamed) {
  Job(1).run([](Process& p) {
    setenv("OFFPATH_FABRIC", "pigeons", 1);
    refuse(p, OFFPATH_ERR_NO_SERVICE, "no fabric 'pigeons'");
  });
}

// Nobody works with less than what was asked for.
TEST(Session, SecurityAndDevicesThatCannotBeAreRefused) {
  const struct {
    const char *fabric, *security, *devices, *says;
  } kCases[] = {{"tcp", "none", "lo", "OFFPATH_FABRIC_SECURITY='none'"},
                {"ucx", "encrypt", "lo", "'ucx' cannot give OFFPATH_FABRIC_SECURITY='encrypt'"},
                {"tcp", "encrypt", "nosuch0", "'nosuch0'"}};
  for (const auto& next : kCases) {
    Job(1).run([&](Process& p) {
      setenv("OFFPATH_FABRIC", next.fabric, 1);
      setenv("OFFPATH_FABRIC_SECURITY", next.security, 1);
      setenv("OFFPATH_UCX_NET_DEVICES", next.devices, 1);
      refuse(p, OFFPATH_ERR_NO_SERVICE, next.says);
    });
  }
}

TEST(Session, StaleSocketsOfDeadJobsAreReplaced) {
  Job(1).run([](Process& p) {
    REQUIRE(mkdir(p.folder.c_str(), 0700) == 0);
    session::listen_at(socket_of(p)).value().reset();  // nobody listens any more, the file stays
    REQUIRE(exists(socket_of(p)));
    offpath_session_detach(p.attach("after a stale socket"));
    REQUIRE(eventually([&] { return files_in(p.folder).empty(); }));
    std::ofstream(socket_of(p)) << "not even a socket";
    offpath_session_detach(p.attach("after a stale file"));
  });
}

TEST(Session, SocketsThatKilledJobsLeftAreRemovedByTheNextOne) {
  Job(1).run([](Process& p) {
    REQUIRE(mkdir(p.folder.c_str(), 0700) == 0);
    const auto of_job = [&](uint8_t number) {
      const uint8_t token[OFFPATH_TOKEN_BYTES] = {number};
      return session::socket_path(p.folder, token);
    };
    session::listen_at(of_job(1)).value().reset();
    const auto other_job = session::listen_at(of_job(2)).value().release();
    const std::string other_node = p.folder + "/0123456789abcdef-00000000.sock";
    session::listen_at(other_node).value().reset();
    offpath_session_detach(p.attach("beside a dead job"));
    REQUIRE(!exists(of_job(1)) && exists(of_job(2)) && exists(other_node));
    pollfd came{other_job, POLLIN, 0};
    REQUIRE(poll(&came, 1, 0) == 0);  // it was not bothered
    REQUIRE(unlink(of_job(2).c_str()) == 0 && unlink(other_node.c_str()) == 0);
  });
}

TEST(Session, AServiceThatSpeaksUnaskedAndEndsIsLost) {
  Job(1).run([](Process& p) {
    REQUIRE(mkdir(p.folder.c_str(), 0700) == 0);
    const auto listening = session::listen_at(socket_of(p));
    base::Fd ends_it;
    std::thread service([&] {
      base::Fd client(accept4(listening->get(), nullptr, nullptr, SOCK_CLOEXEC));
      session::AttachRequest request{};
      REQUIRE(session::receive_message(client.get(), &request, sizeof(request), -1).ok());
      session::AttachReply reply{};
      reply.version = session::kLinkVersion;
      for (int twice = 0; twice < 2; ++twice) REQUIRE(session::send_message(client.get(), &reply, sizeof(reply)).ok());
      ends_it = std::move(client);
    });
    offpath_session_t* session = p.attach("to a service that speaks unasked");
    service.join();
    REQUIRE(offpath_session_alive(session) == 1);
    ends_it.reset();
    REQUIRE(offpath_session_alive(session) == 0);
    offpath_session_detach(session);
    REQUIRE(files_in(p.folder).empty());
  });
}

TEST(Session, SignalsToAllProcessesOfAJobDoNotEndTheService) {
  Job(1).run([](Process& p) {
    offpath_session_t* session = p.attach();
    const pid_t service = service_of(session);
    for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) REQUIRE(kill(service, number) == 0);
    offpath_session_t* another = p.attach("after the signals");
    REQUIRE(service_of(another) == service && service_of(session) == service);
    offpath_session_detach(another);
    REQUIRE(exists(socket_of(p)));
    offpath_session_detach(session);
  });
}

TEST(Session, UnsafeRuntimeFoldersAreRefused) {
  Job(1).run([](Process& p) {
    REQUIRE(mkdir(p.folder.c_str(), 0700) == 0);
    for (const mode_t mode : {0777, 0770, 0707, 0701, 0710, 0720}) {
      REQUIRE(chmod(p.folder.c_str(), mode) == 0);
      refuse(p, OFFPATH_ERR_NO_SERVICE, "OFFPATH_RUNTIME_DIR");
    }
    REQUIRE(chmod(p.folder.c_str(), 0700) == 0 && files_in(p.folder).empty());
    const std::string other = p.folder + "x";
    REQUIRE(symlink(p.folder.c_str(), other.c_str()) == 0);
    setenv("OFFPATH_RUNTIME_DIR", other.c_str(), 1);
    refuse(p, OFFPATH_ERR_NO_SERVICE, "OFFPATH_RUNTIME_DIR");
    unlink(other.c_str());
    std::ofstream(other) << "a file";
    refuse(p, OFFPATH_ERR_NO_SERVICE, "OFFPATH_RUNTIME_DIR");
    unlink(other.c_str());
    setenv("OFFPATH_RUNTIME_DIR", "/nonexistent/folder", 1);
    refuse(p, OFFPATH_ERR_NO_SERVICE, "OFFPATH_RUNTIME_DIR");
    setenv("OFFPATH_RUNTIME_DIR", (p.folder + std::string(150, 'x')).c_str(), 1);
    refuse(p, OFFPATH_ERR_NO_SERVICE, "OFFPATH_RUNTIME_DIR");
    rmdir(getenv("OFFPATH_RUNTIME_DIR"));
  });
}

TEST(Session, SmallFileSizeLimitIsNoMemory) {
  Job(1).run([](Process& p) {
    const rlimit limit{1 << 20, RLIM_INFINITY};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    refuse(p, OFFPATH_ERR_NO_MEMORY, "ulimit -f");
  });
}

// One after the other they would be waited for longer than a client waits for its service.
TEST(Session, AttachesWhileOthersAreThereAndSayNothing) {
  Job(1).run([](Process& p) {
    offpath_session_t* first = p.attach();
    std::vector<base::Fd> silent(40);
    for (base::Fd& each : silent) each = std::move(session::connect_to(socket_of(p)).value());
    offpath_session_t* second = p.attach();
    REQUIRE(service_of(first) == service_of(second));
    silent.clear();
    offpath_session_detach(second);
    offpath_session_detach(first);
  });
}

// A service that may not look into its client. Root may always, so it is made to start without that right.
TEST(Session, AServiceThatMayNotReadUsSaysSo) {
  if (getuid() != 0 || !exists("/usr/bin/setpriv")) GTEST_SKIP() << "needs root and setpriv";
  Job(1).run([](Process& p) {
    setenv("OFFPATH_SERVICE_WRAPPER", "/usr/bin/setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace", 1);
    refuse(p, OFFPATH_ERR_PERMISSION, "ptrace");
  });
}

}  // namespace
}  // namespace offpath::testing
