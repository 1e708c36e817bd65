// SPDX-License-Identifier: BSD-3-Clause
// The device service in a process of its own, and programs that ask it for executors.
#include "service/device_service.hpp"

#include "device/device.hpp"
#include "device/handover.hpp"
#include "device/munge.hpp"
#include "device/probe.hpp"
#include "device/starter.hpp"
#include "session/link.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <poll.h>

#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace offpath::service {
namespace {

using base::Fd;
using device::Device;

constexpr int kTimeoutMs = 20000;

class DeviceServiceTest : public testing::Test {
 protected:
  void TearDown() override {
    if (process_ > 0) end(SIGTERM);
    std::filesystem::remove_all(folder_);
  }
  void start(Fd listening, DeviceServiceOptions options) {
    options.executor = OFFPATH_TEST_EXECUTOR;
    options.memory_bytes = 16 << 20;
    process_ = fork();
    if (process_ == 0) {
      DeviceService service(std::move(options));
      if (service.start().ok()) service.serve(listening.get());
      _exit(0);
    }
  }
  void start_local() {
    path_ = folder_ + "/devices";
    auto listening = session::listen_at(path_);
    ASSERT_TRUE(listening.ok());
    DeviceServiceOptions options;
    options.socket_path = path_;
    start(std::move(listening.value()), options);
  }
  void start_remote(uint32_t max_clients, const std::string& for_agents = "") {
    auto listening = DeviceService::listen_on("127.0.0.1:0");
    ASSERT_TRUE(listening.ok()) << listening.status().text();
    sockaddr_in address{};
    socklen_t length = sizeof(address);
    getsockname(listening->get(), reinterpret_cast<sockaddr*>(&address), &length);
    entry_.host = "127.0.0.1";
    entry_.port = ntohs(address.sin_port);
    DeviceServiceOptions options;
    options.max_clients = max_clients;
    options.key = key_;
    options.for_agents = for_agents;
    options.munge = munge_;
    start(std::move(listening.value()), options);
  }
  base::Result<std::unique_ptr<Device>> open_local() {
    auto socket = device::connect_local(path_, 0);
    if (!socket.ok()) return socket.status();
    return Device::open(std::move(socket.value()), {"local", 0, kTimeoutMs});
  }
  // What a starter answers that runs the script, and the token that the script was given.
  base::Result<std::string> ask(const std::string& wishes, uint8_t first = 1) {
    const std::string key_file = write_file("key", std::string(32, 'k'));
    setenv("OFFPATH_DEVICE_KEY_FILE", key_file.c_str(), 1);
    uint8_t token[OFFPATH_TOKEN_BYTES] = {first, 'o', 'k'};
    auto answer = device::ask_starter("127.0.0.1:" + std::to_string(entry_.port) + wishes, token, kTimeoutMs);
    unsetenv("OFFPATH_DEVICE_KEY_FILE");
    return answer;
  }
  base::Result<std::string> probed() {
    setenv("OFFPATH_DEVICE_KEY_FILE", write_file("key", std::string(32, 'k')).c_str(), 1);
    auto about = device::probe("127.0.0.1:" + std::to_string(entry_.port), kTimeoutMs);
    unsetenv("OFFPATH_DEVICE_KEY_FILE");
    return about;
  }
  void start_starter(const std::string& script, uint32_t max_clients = 8) {
    key_ = device::read_key(write_file("key", std::string(32, 'k'))).value();
    const std::string path = write_file("script", "#!/bin/sh\n" + script);
    chmod(path.c_str(), 0700);
    start_remote(max_clients, path);
  }
  static std::string make_folder() {
    std::string path = testing::TempDir() + "offpath-device-service-XXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    return path;
  }
  std::string write_file(const std::string& name, const std::string& text) const {
    std::string path = folder_ + "/" + name;
    unlink(path.c_str());
    Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600));
    EXPECT_EQ(write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    return path;
  }
  base::Result<std::unique_ptr<Device>> open_remote(const device::Key& key) {
    auto socket = device::connect_remote(entry_, key, kTimeoutMs);
    if (!socket.ok()) return socket.status();
    return Device::open(std::move(socket.value()), {"remote", 1, kTimeoutMs});
  }
  int end(int signal) {
    if (signal != 0) kill(process_, signal);
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    return status;
  }
  // Blocks until the executor's end has been heard.
  static void wait_until_lost(Device& device) {
    while (device.state().ok()) sched_yield();
  }

  const std::string folder_ = make_folder();
  std::string path_;
  device::DeviceEntry entry_;
  device::Key key_{1, 2, 3};
  bool munge_ = false;
  pid_t process_ = -1;
};

TEST_F(DeviceServiceTest, ExecutorsOfTheirOwnAndAnEndAfterTheLast) {
  start_local();
  auto first = open_local();
  auto second = open_local();
  ASSERT_TRUE(first.ok()) << first.status().text();
  ASSERT_TRUE(second.ok()) << second.status().text();
  const auto one = first.value()->description();
  EXPECT_NE(one.process, second.value()->description().process);
  EXPECT_EQ(one.kind, device::DeviceKind::software);
  EXPECT_EQ(one.heap_bytes, 16U << 20);
  EXPECT_NE(one.segment_bytes, 0U);
  // One dies: the other does not notice.
  kill(static_cast<pid_t>(one.process), SIGKILL);
  wait_until_lost(*first.value());
  device::Queue queue;
  const auto place = second.value()->allocate(8);
  ASSERT_TRUE(place.ok());
  EXPECT_TRUE(second.value()->copy(place.value(), place.value(), 8, queue).ok());
  first.value().reset();
  second.value().reset();
  EXPECT_EQ(end(0), 0);
  EXPECT_NE(access(path_.c_str(), F_OK), 0);
}

TEST_F(DeviceServiceTest, RemoteClientsNeedTheKey) {
  start_remote(8);
  auto opened = open_remote(key_);
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  EXPECT_EQ(opened.value()->description().segment_bytes, 0U);
  EXPECT_EQ(opened.value()->description().max_clients, 8U);
  EXPECT_EQ(open_remote(device::Key{9}).status().code(), OFFPATH_ERR_PERMISSION);
  EXPECT_TRUE(opened.value()->state().ok());
}

TEST_F(DeviceServiceTest, MoreProgramsThanTheLimitAreRefusedWithALine) {
  start_remote(2);
  auto first = open_remote(key_);
  auto second = open_remote(key_);
  ASSERT_TRUE(first.ok() && second.ok());
  const auto third = open_remote(key_);
  ASSERT_FALSE(third.ok());
  EXPECT_NE(std::string(third.status().text()).find("--max-clients"), std::string::npos) << third.status().text();
}

TEST_F(DeviceServiceTest, WithTheServiceItsExecutorsEnd) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    start_remote(2);
    auto opened = open_remote(key_);
    ASSERT_TRUE(opened.ok()) << opened.status().text();
    end(signal);
    wait_until_lost(*opened.value());
    EXPECT_FALSE(opened.value()->state().ok());
  }
}

TEST_F(DeviceServiceTest, AgentsAreGivenTheLineOfTheirJobsService) {
  start_starter("head -c 3 | tail -c 2; echo \" $OFFPATH_SERVICE_WORKERS $*\"");
  const auto plain = ask("");
  ASSERT_TRUE(plain.ok()) << plain.status().text();
  const std::string executor = " --executor " OFFPATH_TEST_EXECUTOR;  // the job's service is to start that, too
  EXPECT_EQ(plain.value(), "ok " + executor);
  const auto wishes = ask("/workers=2/cores=0+1/share");
  ASSERT_TRUE(wishes.ok()) << wishes.status().text();
  EXPECT_EQ(wishes.value(), "ok 2" + executor + " --cores 0,1 --share");
  EXPECT_NE(std::string(ask("/workers=0").status().text()).find("workers=0"), std::string::npos);
}

TEST_F(DeviceServiceTest, WhyAJobsServiceDoesNotStartIsSaid) {
  start_starter("echo first >&2; echo 'offpathd: no libucp.so.0' >&2; exit 127");
  const auto answer = ask("");
  EXPECT_EQ(answer.status().code(), OFFPATH_ERR_NO_SERVICE);
  EXPECT_NE(std::string(answer.status().text()).find("no libucp.so.0"), std::string::npos) << answer.status().text();
  end(SIGTERM);
  start_remote(8, "/no/such/program");
  EXPECT_NE(std::string(ask("").status().text()).find("/no/such/program"), std::string::npos);
}

TEST_F(DeviceServiceTest, JobsWhoseServicesRunCountUntilTheyEnd) {
  const std::string runs = write_file("runs", "");
  // As offpathd does it: the service is nobody's child.
  start_starter("(while [ -e " + runs + " ]; do sleep 0.02; done) >/dev/null 2>&1 </dev/null & echo line", 1);
  ASSERT_TRUE(ask("").ok());
  const auto full = ask("", 2);
  ASSERT_FALSE(full.ok());
  EXPECT_NE(std::string(full.status().text()).find("this DPU is full: it serves 1 jobs"), std::string::npos)
      << full.status().text();
  const auto about = probed();
  ASSERT_TRUE(about.ok()) << about.status().text();
  EXPECT_NE(about.value().find("\"jobs\": 1, \"most_jobs\": 1"), std::string::npos) << about.value();
  EXPECT_NE(about.value().find("\"from_bits_per_s\": "), std::string::npos) << about.value();
  unlink(runs.c_str());
  while (probed().value().find("\"jobs\": 0") == std::string::npos) sched_yield();
  write_file("runs", "");
  EXPECT_TRUE(ask("", 2).ok());
  unsetenv("OFFPATH_DEVICE_KEY_FILE");
}

TEST_F(DeviceServiceTest, AStoppedExecutorIsEnded) {
  start_local();
  auto stopped = open_local();
  auto other = open_local();
  ASSERT_TRUE(stopped.ok() && other.ok());
  const auto process = [](const auto& device) { return static_cast<pid_t>(device.value()->description().process); };
  kill(process(other), SIGSTOP);
  kill(process(stopped), SIGSTOP);
  kill(process(other), SIGCONT);
  wait_until_lost(*stopped.value());
  EXPECT_TRUE(other.value()->state().ok());
}

TEST_F(DeviceServiceTest, WhoSaysNothingTakesNoJobsPlace) {
  start_starter("echo line", 1);
  const auto quiet = device::connect_remote(entry_, key_, kTimeoutMs);
  ASSERT_TRUE(quiet.ok()) << quiet.status().text();
  const auto answer = ask("");
  EXPECT_TRUE(answer.ok()) << answer.status().text();
}

size_t children_of(pid_t process) {
  std::ifstream list("/proc/" + std::to_string(process) + "/task/" + std::to_string(process) + "/children");
  return static_cast<size_t>(std::distance(std::istream_iterator<int>(list), {}));
}

// Silent, half spoken, garbage: no process for any of them, and the owner is let in.
TEST_F(DeviceServiceTest, StrangersMakeNoProcessesAndShutNobodyOut) {
  start_remote(8);
  std::deque<Fd> strangers;
  for (int i = 0; i < 2000; ++i) {
    auto socket = device::dial(entry_, kTimeoutMs);
    ASSERT_TRUE(socket.ok()) << socket.status().text();
    const std::string words(i % 3 == 0 ? 1 : i % 3 == 1 ? 4 : 300, static_cast<char>(i));
    static_cast<void>(send(socket->get(), words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    strangers.push_back(std::move(socket.value()));
    if (strangers.size() > 200) strangers.pop_front();
  }
  EXPECT_EQ(children_of(process_), 0U);
  auto opened = open_remote(key_);
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  EXPECT_EQ(children_of(process_), 1U);
  // They are sent away though nobody else comes.
  for (const Fd& stranger : strangers) {
    char byte;
    pollfd wait{stranger.get(), POLLIN, 0};
    ASSERT_GT(poll(&wait, 1, kTimeoutMs), 0) << "it is held";
    EXPECT_LE(recv(stranger.get(), &byte, 1, 0), 0);
  }
}

// Passes on what a program and the service say, which is records after a greeting of a fixed length (device/line.hpp), and does
// to one record of one side what the test wants.
class Middle {
 public:
  enum class Deed { flip, repeat, leave_out, swap };
  struct Plan {
    Deed deed = Deed::flip;
    bool back = false;
    size_t record = SIZE_MAX;
  };

  using Lengths = std::vector<size_t>;
  // `passed`: lengths of the records that each side has said; to be read when this has gone.
  Middle(const device::DeviceEntry& to, const Plan& plan, std::array<Lengths, 2>& passed)
      : to_(to), plan_(plan), passed_(passed) {
    auto listening = DeviceService::listen_on("127.0.0.1:0");
    EXPECT_TRUE(listening.ok());
    sockaddr_in address{};
    socklen_t length = sizeof(address);
    getsockname(listening->get(), reinterpret_cast<sockaddr*>(&address), &length);
    entry.host = "127.0.0.1";
    entry.port = ntohs(address.sin_port);
    thread_ = std::thread([this, listening = std::move(listening.value())] {
      const Fd near(accept(listening.get(), nullptr, nullptr));
      const auto far = device::dial(to_, kTimeoutMs);
      if (!far.ok()) return;
      pollfd ends[2] = {{near.get(), POLLIN, 0}, {far->get(), POLLIN, 0}};
      while (poll(ends, 2, -1) > 0) {
        for (int side = 0; side < 2; ++side) {
          uint8_t bytes[65536];
          const ssize_t got = ends[side].revents == 0 ? -1 : recv(ends[side].fd, bytes, sizeof(bytes), MSG_DONTWAIT);
          if (got == 0 || (got < 0 && ends[side].revents != 0 && errno != EAGAIN)) return;
          if (got < 0) continue;
          const Bytes out = take(static_cast<size_t>(side), Bytes(bytes, bytes + got));
          for (size_t put = 0; put < out.size();) {
            const ssize_t now = send(ends[1 - side].fd, out.data() + put, out.size() - put, MSG_NOSIGNAL);
            if (now <= 0) return;
            put += static_cast<size_t>(now);
          }
        }
      }
    });
  }
  ~Middle() { thread_.join(); }
  device::DeviceEntry entry;

 private:
  using Bytes = std::vector<uint8_t>;

  static void append(Bytes& to, const Bytes& bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }
  Bytes take(size_t side, const Bytes& bytes) {
    const size_t greeting = std::min(greeting_left_[side], bytes.size());
    greeting_left_[side] -= greeting;
    const auto records = bytes.begin() + static_cast<ptrdiff_t>(greeting);
    Bytes out(bytes.begin(), records);
    Bytes& came = came_[side];
    came.insert(came.end(), records, bytes.end());
    while (came.size() >= length_of(came)) {
      const auto end = came.begin() + static_cast<ptrdiff_t>(length_of(came));
      const Bytes record(came.begin(), end);
      came.erase(came.begin(), end);
      append(out, of_record(side, passed_[side].size(), record));
      passed_[side].push_back(record.size());
    }
    return out;
  }
  static size_t length_of(const Bytes& record) {
    constexpr size_t kHead = 4 + seal::kTagBytes;
    uint32_t bytes = 0;
    if (record.size() < kHead) return kHead;
    memcpy(&bytes, record.data(), sizeof(bytes));
    return kHead + bytes + seal::kTagBytes;
  }
  Bytes of_record(size_t side, size_t number, Bytes record) {
    if (plan_.back != (side == 1) || (number != plan_.record && held_.empty())) return record;
    switch (plan_.deed) {
      case Deed::flip:
        record[record.size() / 2] ^= 4;
        return record;
      case Deed::repeat:
        append(record, Bytes(record));
        return record;
      case Deed::leave_out:
        return {};
      case Deed::swap:
        if (held_.empty()) return held_ = record, Bytes();
        append(record, held_);
        return held_.clear(), record;
    }
    return record;
  }

  const device::DeviceEntry to_;
  const Plan plan_;
  std::array<Lengths, 2>& passed_;
  std::array<Bytes, 2> came_;
  std::array<size_t, 2> greeting_left_{seal::kGreetingBytes + seal::kProofBytes,
                                       seal::kChallengeBytes + seal::kVerdictBytes};
  Bytes held_;
  std::thread thread_;
};

TEST_F(DeviceServiceTest, WhoIsBetweenProgramAndDeviceChangesNothing) {
  start_remote(8);
  const std::vector<uint8_t> data(100000, 7);
  std::array<Middle::Lengths, 2> all;
  // Whether all went well; what was read was sent.
  const auto exchange = [&](const Middle::Plan& plan) {
    std::array<Middle::Lengths, 2> passed;
    bool well = false;
    {
      const device::DeviceEntry real = entry_;
      Middle middle(real, plan, passed);
      entry_ = middle.entry;
      auto opened = open_remote(key_);
      entry_ = real;
      if (opened.ok()) {
        device::Queue queue;
        std::vector<uint8_t> read(data.size());
        const auto place = opened.value()->allocate(data.size());
        well = place.ok() && opened.value()->write(place.value(), data.data(), data.size(), queue).ok() &&
               opened.value()->read(read.data(), place.value(), read.size(), queue).ok() &&
               opened.value()->wait(queue).ok();
        EXPECT_TRUE(!well || read == data) << "record " << plan.record << (plan.back ? " back" : "");
        opened.value().reset();
      }
    }
    all = well ? passed : all;
    return well;
  };
  ASSERT_TRUE(exchange({}));
  using Deed = Middle::Deed;
  for (const bool back : {false, true}) {
    const Middle::Lengths lengths = all[back ? 1 : 0];
    ASSERT_GE(lengths.size(), 3U);
    for (size_t record = 0; record < lengths.size(); ++record) {
      EXPECT_FALSE(exchange({Deed::flip, back, record})) << "nobody noticed, " << record << (back ? " back" : "");
      if (record + 1 == lengths.size()) break;  // nobody reads what comes behind it
      EXPECT_FALSE(exchange({Deed::repeat, back, record})) << "nobody noticed, " << record << (back ? " back" : "");
    }
    // One that is full has another behind it.
    const auto full = std::max_element(lengths.begin(), lengths.end()) - lengths.begin();
    for (const Deed deed : {Deed::leave_out, Deed::swap}) {
      EXPECT_FALSE(exchange({deed, back, static_cast<size_t>(full)})) << "nobody noticed" << (back ? ", back" : "");
    }
  }
}

// A munged of our own, for as long as this lives.
class Munged {
 public:
  explicit Munged(const std::string& folder) : folder_(folder) {
    mkdir(folder.c_str(), 0755);
    Fd key(open((folder + "/key").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    const std::string secret(64, 'm');
    EXPECT_EQ(write(key.get(), secret.data(), secret.size()), static_cast<ssize_t>(secret.size()));
    process_ = fork();
    if (process_ == 0) {
      const auto option = [&](const char* name, const char* file) { return std::string(name) + folder + file; };
      const std::string words[] = {option("--key-file=", "/key"), option("--socket=", "/socket"),
                                   option("--pid-file=", "/pid"), option("--log-file=", "/log"),
                                   option("--seed-file=", "/seed")};
      execlp("munged", "munged", "--foreground", "--force", words[0].c_str(), words[1].c_str(), words[2].c_str(),
             words[3].c_str(), words[4].c_str(), nullptr);
      execl("/usr/sbin/munged", "munged", "--foreground", "--force", words[0].c_str(), words[1].c_str(),
            words[2].c_str(), words[3].c_str(), words[4].c_str(), nullptr);
      _exit(1);
    }
    setenv("OFFPATH_MUNGE_SOCKET", socket().c_str(), 1);
  }
  ~Munged() {
    kill(process_, SIGTERM);
    waitpid(process_, nullptr, 0);
    unsetenv("OFFPATH_MUNGE_SOCKET");
    const std::string remove = "rm -rf " + folder_;
    EXPECT_EQ(system(remove.c_str()), 0);
  }
  std::string socket() const { return folder_ + "/socket"; }
  bool runs() const {
    while (!device::munge_seal("", 0).ok()) {  // its socket is there before it listens
      if (waitpid(process_, nullptr, WNOHANG) != 0) return false;
      sched_yield();
    }
    return true;
  }

 private:
  std::string folder_;
  pid_t process_;
};

TEST_F(DeviceServiceTest, WhomMungeNamesHisJobRunsAs) {
  if (geteuid() != 0) GTEST_SKIP() << "serving users needs root";
  const Munged munged("/tmp/offpath-munge-" + std::to_string(getpid()));
  if (!munged.runs()) GTEST_SKIP() << "munged is missing";
  const std::string path = "/tmp/offpath-munge-" + std::to_string(getpid()) + "/script";
  Fd script(open(path.c_str(), O_WRONLY | O_CREAT, 0755));
  const std::string text = "#!/bin/sh\nhead -c 3 | tail -c 2; echo \" $(id -u) $(id -g) $(id -G) $HOME\"\n";
  ASSERT_EQ(write(script.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  script.reset();
  for (const bool believed : {true, false}) {
    key_ = device::read_key(write_file("key", std::string(32, 'k'))).value();
    munge_ = believed;
    start_remote(8, path);
    // The client is another user; what it hears comes through a pipe.
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t client = fork();
    if (client == 0) {
      constexpr uid_t kNobody = 65534;
      if (setgid(kNobody) != 0 || setuid(kNobody) != 0) _exit(1);
      uint8_t token[OFFPATH_TOKEN_BYTES] = {1, 'o', 'k'};
      const auto answer = device::ask_starter("127.0.0.1:" + std::to_string(entry_.port), token, kTimeoutMs);
      const std::string said = answer.ok() ? answer.value() : answer.status().text();
      _exit(write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size()) ? 0 : 1);
    }
    close(ends[1]);
    int ended = 0;
    waitpid(client, &ended, 0);
    char said[512] = "";
    EXPECT_GT(read(ends[0], said, sizeof(said) - 1), 0);
    close(ends[0]);
    EXPECT_EQ(ended, 0);
    const std::string expected = believed ? "ok 65534 65534 65534 /nonexistent" : "may not take MUNGE's word";
    EXPECT_NE(std::string(said).find(expected), std::string::npos) << said;
    EXPECT_TRUE(ask("").ok());  // who knows the key is served as before
    end(SIGTERM);
  }
}

TEST_F(DeviceServiceTest, AWrongKeyIsALine) {
  start_remote(8);  // with another
  EXPECT_EQ(ask("").status().code(), OFFPATH_ERR_PERMISSION);
  EXPECT_NE(std::string(ask("").status().text()).find("does not know the key"), std::string::npos);
}

TEST_F(DeviceServiceTest, BadAddresses) {
  for (const char* address : {"nowhere", "127.0.0.1:notaport", "300.1.1.1:80"}) {
    EXPECT_FALSE(DeviceService::listen_on(address).ok()) << address;
  }
}

}  // namespace
}  // namespace offpath::service
