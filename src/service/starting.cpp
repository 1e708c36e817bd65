// SPDX-License-Identifier: BSD-3-Clause
#include "service/starting.hpp"

#include "base/clock.hpp"
#include "base/process.hpp"
#include "session/link.hpp"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace offpath::service {

using base::Fd;
using base::Result;
using base::Status;

namespace {

constexpr uint64_t kLimitNs = 20000000000;  // for a machine under load; who asks has a limit of its own
constexpr size_t kMostBytes = 16 << 10;

struct Said {
  std::string line, last_words;
  bool late = false;
};

// Until both ends are closed or a line is there.
Said listen_to(int output, int error, uint64_t end_ns) {
  Said said;
  std::string words;
  pollfd waits[] = {{output, POLLIN, 0}, {error, POLLIN, 0}};
  while ((waits[0].fd >= 0 || waits[1].fd >= 0) && said.line.find('\n') == std::string::npos) {
    const uint64_t now_ns = base::clock_ns();
    said.late = now_ns >= end_ns;
    if (said.late || poll(waits, 2, static_cast<int>((end_ns - now_ns) / 1000000 + 1)) < 0) break;
    for (pollfd& wait : waits) {
      if (wait.revents == 0) continue;
      char text[1024];
      const ssize_t got = read(wait.fd, text, sizeof(text));
      std::string& into = wait.fd == output ? said.line : words;
      if (got <= 0 || into.size() > kMostBytes) wait.fd = -1;
      if (got > 0) into.append(text, static_cast<size_t>(got));
    }
  }
  said.line = said.line.substr(0, said.line.find('\n'));
  while (!words.empty() && words.back() == '\n') words.pop_back();
  said.last_words = words.substr(words.rfind('\n') + 1);
  return said;
}

[[noreturn]] void become(std::vector<std::string> words, const device::Wishes& wishes, int input, int output,
                         int error) {
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  if (wishes.workers != 0) setenv("OFFPATH_SERVICE_WORKERS", std::to_string(wishes.workers).c_str(), 1);
  if (wishes.executors != 0) setenv("OFFPATH_TASK_EXECUTORS", std::to_string(wishes.executors).c_str(), 1);
  if (!wishes.functions.empty()) setenv("OFFPATH_TASK_FOLDERS", wishes.functions.c_str(), 1);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  base::close_from(STDERR_FILENO + 1);
  setsid();
  signal(SIGPIPE, SIG_DFL);
  execvp(arguments[0], arguments.data());
  fprintf(stderr, "cannot execute %s: %s\n", arguments[0], strerror(errno));
  _exit(127);
}

// For good, with nothing of root's left.
Status become_user(uid_t user) {
  const passwd* entry = getpwuid(user);
  if (entry == nullptr) {
    return Status::error(OFFPATH_ERR_PERMISSION,
                         "the DPU does not know the user %u (its job would run as that). Add it there", user);
  }
  if (initgroups(entry->pw_name, entry->pw_gid) != 0 || setgid(entry->pw_gid) != 0 || setuid(user) != 0)
    return Status::system_error(OFFPATH_ERR_PERMISSION, errno, "cannot become %.40s", entry->pw_name);
  for (const char* name : {"XDG_RUNTIME_DIR", "OFFPATH_RUNTIME_DIR"}) unsetenv(name);
  for (const char* name : {"USER", "LOGNAME"}) setenv(name, entry->pw_name, 1);
  setenv("HOME", entry->pw_dir, 1);
  [[maybe_unused]] const int moved = chdir("/");
  return {};
}

// Its service runs here already: one more host of the job.
bool is_known(const device::StartRequest& request) {
  uint8_t token[OFFPATH_TOKEN_BYTES];
  memcpy(token, request.token.data(), sizeof(token));
  const auto folder = session::runtime_folder();
  return folder.ok() && access(session::socket_path(folder.value(), token, session::For::agents).c_str(), F_OK) == 0;
}

}  // namespace

std::vector<pid_t> jobs_of(pid_t starter) {
  std::vector<pid_t> jobs = base::children_of(starter);
  // Those in the starter's own session are executors, and children that answer somebody.
  std::erase_if(jobs, [&](pid_t process) {
    const auto kin = base::kinship_of(process);
    return !kin || kin->session == getsid(starter) || kin->state == 'Z';
  });
  return jobs;
}

static Result<std::string> start_for_agents(const device::StartRequest& request, const StartingOptions& options,
                                            bool full) {
  if (full && !is_known(request)) {
    return Status::error(OFFPATH_ERR_NO_SERVICE,
                         "this DPU is full: it serves %u jobs already (its limit). Try later, or raise offpathd's "
                         "--max-clients there",
                         options.most);
  }
  int input[2], output[2], error[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input) != 0 || pipe2(output, O_CLOEXEC) != 0 ||
      pipe2(error, O_CLOEXEC) != 0)
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot make a pipe");
  Fd input_theirs(input[0]), input_ours(input[1]), output_ours(output[0]), output_theirs(output[1]),
      error_ours(error[0]), error_theirs(error[1]);
  std::vector<std::string> words = options.words;
  const std::string& cores = request.wishes.cores.empty() ? options.cores : request.wishes.cores;
  if (!cores.empty()) words.insert(words.end(), {"--cores", cores});
  if (request.wishes.shares_cores || options.shares_cores) words.emplace_back("--share");
  const pid_t child = fork();
  if (child == 0) become(words, request.wishes, input_theirs.get(), output_theirs.get(), error_theirs.get());
  if (child < 0) return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot start the job's service");
  output_theirs.reset();
  error_theirs.reset();
  [[maybe_unused]] const ssize_t sent =
      send(input_ours.get(), request.token.data(), request.token.size(), MSG_NOSIGNAL);
  input_ours.reset();
  const Said said = listen_to(output_ours.get(), error_ours.get(), base::clock_ns() + kLimitNs);
  if (said.line.empty()) kill(-child, SIGKILL);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!said.line.empty()) return said.line;
  return Status::error(OFFPATH_ERR_NO_SERVICE, "the job's service does not start on the DPU: %.160s",
                       said.late                 ? "it says nothing"
                       : said.last_words.empty() ? "it ended without a word"
                                                 : said.last_words.c_str());
}

Result<std::string> start_as(std::optional<uid_t> user, const device::StartRequest& request,
                             const StartingOptions& options) {
  // Before it becomes a user's process: /proc may hide those of other users from that.
  const bool full = jobs_of(options.starter).size() >= options.most;
  if (!user || *user == geteuid()) return start_for_agents(request, options, full);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot make a pipe");
  const Fd output(ends[0]);
  Fd input(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    const Status status = become_user(*user);
    const std::string said = device::encode_answer(status.ok() ? start_for_agents(request, options, full) : status);
    [[maybe_unused]] const ssize_t written = write(input.get(), said.data(), said.size());
    _exit(0);
  }
  input.reset();
  std::string said(kMostBytes, '\0');
  size_t used = 0;
  for (ssize_t got;
       child > 0 && used < said.size() && (got = read(output.get(), said.data() + used, said.size() - used)) > 0;)
    used += static_cast<size_t>(got);
  said.resize(used);
  while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return device::decode_answer(said);
}

}  // namespace offpath::service
