// SPDX-License-Identifier: BSD-3-Clause
// Watching a service: what an observer is shown, that it changes nothing, and who is refused.
#include "hostile.hpp"
#include "watcher.hpp"
#include "window.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <utility>

namespace offpath::testing {
namespace {

offpath_op_t* post_alltoall(offpath_team_t* team, const std::vector<uint8_t>& send, std::vector<uint8_t>& recv,
                            size_t bytes) {
  offpath_op_t* op = nullptr;
  REQUIRE_STATUS(offpath_alltoall(team, send.data(), recv.data(), bytes, &op), OFFPATH_OK);
  return op;
}

TEST(Observe, ShowsWhatIsInFlightAndWhoIsWaitedFor) {
  Job(2).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    constexpr size_t kBytes = 100'000;
    std::vector<uint8_t> send(2 * kBytes, 1), recv(2 * kBytes);
    if (p.rank == 1) {
      p.barrier();
      p.finish_ok(post_alltoall(team, send, recv, kBytes));
    } else {
      offpath_op_t* op = post_alltoall(team, send, recv, kBytes);
      const Watcher watcher(p);
      REQUIRE_STATUS(static_cast<offpath_status_t>(watcher.reply.status), OFFPATH_OK);
      const ObservationHeader& header = watcher.header();
      REQUIRE(header.magic == kObservationMagic && header.version == kObservationVersion);
      REQUIRE(header.bytes == watcher.bytes && header.worker_count == 1 && header.process == watcher.reply.process);
      const ClientRecord* clients = watcher.page().clients;
      REQUIRE(eventually([&] { return watcher.page().worker.clients.load() == 2; }));
      const ClientRecord& own = clients[clients[0].process.load() == static_cast<uint32_t>(getpid()) ? 0 : 1];
      REQUIRE(eventually([&] { return own.in_flight.load() == 1; }));
      watcher.refresh();
      REQUIRE(own.rank.load() == 0 && own.team_size.load() == 2 && own.posted.load() == 1 && own.done.load() == 0);
      REQUIRE(own.oldest.kind.load() == static_cast<uint32_t>(OpKind::collective));
      REQUIRE(own.oldest.form.load() == OFFPATH_EXCHANGE && own.oldest.bytes.load() == 2 * kBytes);
      REQUIRE(own.oldest.waits.load() == static_cast<uint32_t>(base::Waits::not_posted));
      REQUIRE(own.oldest.members_count.load() == 1 && own.oldest.members[0].load() == 1);
      p.barrier();
      p.finish_ok(op);
      REQUIRE(eventually([&] { return own.done.load() == 1; }));
      watcher.refresh();
      REQUIRE(own.in_flight.load() == 0 && own.failed.load() == 0 && own.progress_ns.load() > 0);
      REQUIRE(own.waited_ns.load() > 0 && watcher.page().worker.local_bytes.load() >= 2 * kBytes);
    }
  });
}

TEST(Observe, ShowsALockThatIsWaitedFor) {
  Job(2).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    uint64_t memory = 0;
    offpath_window_t* window = open_window(team, 1, &memory, sizeof(memory));
    p.barrier();
    const offpath_remote_t lock = remote_of(OFFPATH_LOCK_EXCLUSIVE, 1, 0, 0);
    if (p.rank == 0) REQUIRE_STATUS(run(window, lock), OFFPATH_OK);
    p.barrier();
    if (p.rank == 1) {
      offpath_op_t* op = nullptr;
      REQUIRE_STATUS(offpath_remote(window, &lock, &op), OFFPATH_OK);
      const Watcher watcher(p);
      REQUIRE(eventually([&] { return watcher.page().worker.clients.load() == 2; }));
      const ClientRecord* clients = watcher.page().clients;
      const ClientRecord& own = clients[clients[0].process.load() == static_cast<uint32_t>(getpid()) ? 0 : 1];
      REQUIRE(eventually([&] { return own.in_flight.load() == 1; }));
      watcher.refresh();
      REQUIRE(own.oldest.kind.load() == static_cast<uint32_t>(OpKind::remote));
      REQUIRE(own.oldest.form.load() == OFFPATH_LOCK_EXCLUSIVE && own.oldest.team_size.load() == 2);
      REQUIRE(own.oldest.waits.load() == static_cast<uint32_t>(base::Waits::answers));
      REQUIRE(own.oldest.members_count.load() == 1 && own.oldest.members[0].load() == 1);
      p.barrier();
      p.finish_ok(op);
    } else {
      p.barrier();
    }
    REQUIRE_STATUS(run(window, remote_of(OFFPATH_UNLOCK, 1, 0, 0)), OFFPATH_OK);
    p.barrier();
    offpath_window_destroy(window);
  });
}

TEST(Observe, NothingIsWrittenWithoutAnObserver) {
  Job(1).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    uint64_t last = 0;
    const uint8_t* page = nullptr;
    size_t bytes = 0;
    {
      Watcher watcher(p);
      watcher.refresh();
      page = std::exchange(watcher.data, nullptr);  // the mapping stays
      bytes = watcher.bytes;
    }
    const auto& worker = reinterpret_cast<const WorkerPage*>(page + kObservationHeaderBytes)->worker;
    // One tick may be under way; each operation gives the service a turn to learn of the departure.
    REQUIRE(eventually([&] {
      last = worker.generation.load();
      usleep(600'000);
      return worker.generation.load() == last;
    }));
    check_honest(p, team);
    const Watcher again(p);
    REQUIRE(eventually([&] { return worker.generation.load() > last; }));  // the same memory
    munmap(const_cast<uint8_t*>(page), bytes);
  });
}

TEST(Observe, TheMemoryIsOnlyToBeRead) {
  Job(1).run_in_team([](Process& p, offpath_session_t*, offpath_team_t*) {
    const Watcher watcher(p);
    const int fd = watcher.memory.get();
    REQUIRE(mmap(nullptr, watcher.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
    REQUIRE(mprotect(const_cast<uint8_t*>(watcher.data), watcher.bytes, PROT_READ | PROT_WRITE) != 0);
    REQUIRE(pwrite(fd, "x", 1, 0) < 0 && ftruncate(fd, 0) != 0 && ftruncate(fd, 1 << 30) != 0);
    const Fd reopened(open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(!reopened.valid() || pwrite(reopened.get(), "x", 1, 0) < 0);
  });
}

TEST(Observe, WrongRequestsAreRefused) {
  Job(1).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    AttachRequest request = observe_request();
    request.version = kLinkVersion + 1;
    const Watcher other_release(p, request);
    REQUIRE_STATUS(static_cast<offpath_status_t>(other_release.reply.status), OFFPATH_ERR_NO_SERVICE);
    REQUIRE(other_release.data == nullptr && other_release.reply.text[0] != '\0');
    request = observe_request();
    request.kind = 77;
    const Watcher unknown(p, request);
    REQUIRE(unknown.reply.status != OFFPATH_OK && unknown.data == nullptr);
    for (const size_t bytes : {size_t{1}, sizeof(request) - 1}) ask(p, &request, bytes, -1);
    check_honest(p, team);
    // What an observer passes or says afterwards is its end, and nothing else.
    const Segment segment;
    request = observe_request();
    const Answer with_segment = ask(p, &request, sizeof(request), segment.memory.fd());
    REQUIRE(with_segment.reply && with_segment.reply->status == OFFPATH_OK);
    const Watcher chatty(p);
    REQUIRE(send_message(chatty.socket.get(), &request, sizeof(request)).ok());
    uint8_t byte;
    REQUIRE(recv(chatty.socket.get(), &byte, 1, 0) <= 0);
    check_honest(p, team);
  });
}

TEST(Observe, ThereIsAMostOfObservers) {
  Job(1).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    std::vector<std::unique_ptr<Watcher>> watchers;
    do {
      watchers.push_back(std::make_unique<Watcher>(p));
      REQUIRE(watchers.size() < 1000);
    } while (watchers.back()->reply.status == OFFPATH_OK);
    REQUIRE(strstr(watchers.back()->reply.text, "watch this service already") != nullptr);
    check_honest(p, team);
    watchers.clear();
    REQUIRE(eventually([&] { return Watcher(p).reply.status == OFFPATH_OK; }));
  });
}

// The service ends with its last client; its observers see that by the socket.
TEST(Observe, ObserversKeepNoService) {
  Job(1).run([](Process& p) {
    offpath_session_t* session = nullptr;
    p.join(session);
    const Watcher watcher(p);
    offpath_session_detach(session);
    uint8_t byte;
    REQUIRE(recv(watcher.socket.get(), &byte, 1, 0) == 0);
    REQUIRE(eventually([&] { return !exists(socket_path(p.folder, p.shared.token)); }));
    REQUIRE(watcher.header().magic == kObservationMagic);  // what was there last stays
  });
}

TEST(Observe, OtherUsersAreRefused) {
  if (getuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  Job(1).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    const std::string path = socket_path(p.folder, p.shared.token);
    const std::string root = p.folder.substr(0, p.folder.rfind('/'));
    for (const std::string& open_to_all : {root, p.folder, path}) REQUIRE(chmod(open_to_all.c_str(), 0777) == 0);
    const pid_t child = fork();
    if (child == 0) {
      REQUIRE(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
      const Watcher stranger(p);
      REQUIRE_STATUS(static_cast<offpath_status_t>(stranger.reply.status), OFFPATH_ERR_PERMISSION);
      REQUIRE(stranger.data == nullptr && strstr(stranger.reply.text, "another user") != nullptr);
      _exit(0);
    }
    REQUIRE(ended_well(child));
    check_honest(p, team);
  });
}

}  // namespace
}  // namespace offpath::testing
