// SPDX-License-Identifier: BSD-3-Clause
// The device service in a process of its own, and programs that ask it for executors.
#include "device_service_fixture.hpp"

#include <deque>

namespace offpath::service {
namespace {

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

// Silent, half spoken, garbage: no process for any of them, and the owner is let in.
TEST_F(DeviceServiceTest, StrangersMakeNoProcessesAndShutNobodyOut) {
  start_remote(8);
  std::deque<Fd> strangers;
  for (int i = 0; i < 2000; ++i) {
    strangers.push_back(stranger_with(std::string(i % 3 == 0 ? 1 : i % 3 == 1 ? 4 : 300, static_cast<char>(i))));
    if (strangers.size() > 200) strangers.pop_front();
  }
  EXPECT_EQ(children_of(process_), 0U);
  auto opened = open_remote(key_);
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  EXPECT_EQ(children_of(process_), 1U);
  // They are sent away though nobody else comes.
  for (const Fd& stranger : strangers) expect_sent_away(stranger);
}

// He says that MUNGE names him: that is looked at when he has said all of it.
TEST_F(DeviceServiceTest, HalfACredentialMakesNoProcess) {
  munge_ = true;
  start_remote(8);
  std::vector<Fd> strangers;
  for (int i = 0; i < 60; ++i) strangers.push_back(stranger_with(half_a_credential(i)));
  auto opened = open_remote(key_);
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  EXPECT_EQ(children_of(process_), 1U);
  for (const Fd& stranger : strangers) expect_sent_away(stranger);
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
