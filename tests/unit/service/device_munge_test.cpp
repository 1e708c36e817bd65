// SPDX-License-Identifier: BSD-3-Clause
// A device service that takes MUNGE's word for who asks.
#include "device/munge.hpp"
#include "device_service_fixture.hpp"

#include <sys/un.h>

namespace offpath::service {
namespace {

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
    std::vector<Fd> strangers;  // they take nobody's place
    for (int i = 0; i < 20; ++i) strangers.push_back(stranger_with(half_a_credential(i)));
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

// MUNGE does not answer, so that the processes which ask it are there as long as the test wants.
TEST_F(DeviceServiceTest, WhomMungeHasNotNamedTakesNoProgramsPlace) {
  const auto sealed = device::munge_seal("", 0);
  if (std::string(sealed.status().text()).find("not installed") != std::string::npos) GTEST_SKIP() << "no MUNGE";
  sockaddr_un address{AF_UNIX, ""};
  const std::string silent = folder_ + "/munge";
  ASSERT_LT(silent.copy(address.sun_path, sizeof(address.sun_path)), sizeof(address.sun_path));
  const Fd munged(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(munged.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(munged.get(), 64), 0);
  setenv("OFFPATH_MUNGE_SOCKET", silent.c_str(), 1);
  munge_ = true;
  start_remote(2);
  unsetenv("OFFPATH_MUNGE_SOCKET");
  std::vector<Fd> strangers;
  for (int i = 0; i < 20; ++i) strangers.push_back(stranger_with(std::string("OFPM\6\0\0\0MUNGE:", 14)));
  while (children_of(process_) < 8) sched_yield();
  const auto opened = open_remote(key_);
  EXPECT_TRUE(opened.ok()) << opened.status().text();
  EXPECT_EQ(children_of(process_), 9U) << "no more are looked at at a time";
}

}  // namespace
}  // namespace offpath::service
