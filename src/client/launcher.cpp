// SPDX-License-Identifier: BSD-3-Clause
#include "client/launcher.hpp"

#include "base/environment.hpp"
#include "base/local_ranks.hpp"
#include "base/placement.hpp"
#include "base/process.hpp"
#include "session/dpus.hpp"
#include "session/link.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <vector>

extern char** environ;

// The thread sanitizer's clone() ends a fork in parent and child. They are one memory here, so it would end twice, and this thread's locks
// and calls would not be seen from then on. This is the C library's.
#ifdef __SANITIZE_THREAD__
extern "C" int __clone(int (*)(void*), void*, int, void*, ...) noexcept;
#define clone __clone
#endif

namespace offpath::client {
namespace {

using base::Environment;
using base::Fd;
using base::Result;
using base::Sharing;
using base::Status;

constexpr int kListenFd = 3;
constexpr int kTokenFd = 4;
constexpr size_t kStackBytes = 64 << 10;

std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&start_service), &info) == 0 || info.dli_fname == nullptr) return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string find_service() {
  std::string chosen = Environment::text("OFFPATH_SERVICE_PATH");
  if (!chosen.empty()) return chosen;
  const std::string folder = own_folder();
  // Build tree or plain prefix (lib/), Debian's lib/<triplet>/, a private folder below those.
  for (const char* relative : {"/../bin/offpathd", "/../../bin/offpathd", "/offpathd", "/../../../bin/offpathd"}) {
    std::string path = folder + relative;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "offpathd";
}

struct Chosen {
  std::string list;
  bool shared;  // with the ranks, for want of others
};

Result<Chosen> choose_cores(const char* given, Sharing sharing) {
  if (given != nullptr && *given != '\0') return Chosen{given, false};
  const std::string configured = Environment::text("OFFPATH_SERVICE_CORES");
  if (!configured.empty()) return Chosen{configured, false};
  const base::Placement placement = base::place_service(base::local_rank_masks(), base::own_allowed_cores(), sharing);
  if (placement.cores.any()) return Chosen{base::core_list(placement.cores), placement.shared};
  return Status::error(
      OFFPATH_ERR_NO_SERVICE,
      "no core is left for the service (it never takes the application's "
      "uninvited). Leave a core free, name one in OFFPATH_SERVICE_CORES, or set OFFPATH_SERVICE_SHARE=1");
}

std::vector<std::string> wrapper_words() {
  std::string wrapper = Environment::text("OFFPATH_SERVICE_WRAPPER");
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  for (size_t at; (at = wrapper.find("%h")) != std::string::npos;) wrapper.replace(at, 2, host);
  return base::words_of(wrapper);
}

// Everything the new process needs, made before the clone: afterwards only system calls are allowed.
struct Launch {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  int listening = -1;
  int token = -1;
  int null_device = -1;
  uint8_t* stack = nullptr;
  volatile int error = 0;
  volatile pid_t process = 0;
};

// Not the C library's, before which sanitizers look back.
[[noreturn]] void leave(int status) {
  while (true) syscall(SYS_exit_group, status);
}

// Shares our memory, suspended parent: no allocation, no locks, no return.
int become_service(void* data) {
  auto* launch = static_cast<Launch*>(data);
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // Out of the way of the numbers below first.
  const int listening = fcntl(launch->listening, F_DUPFD, 10);
  const int token = fcntl(launch->token, F_DUPFD, 10);
  const int null_device = fcntl(launch->null_device, F_DUPFD, 10);
  for (int fd = 0; fd < 3; ++fd) dup2(null_device, fd);
  dup2(listening, kListenFd);
  dup2(token, kTokenFd);
  if (syscall(SYS_close_range, kTokenFd + 1, ~0U, 0) != 0) {  // before Linux 5.9
    for (int fd = kTokenFd + 1; fd < 4096; ++fd) close(fd);
  }
  execvpe(launch->arguments[0], launch->arguments.data(), launch->environment.data());
  launch->error = errno;
  leave(127);
}

int spawn_orphan(void* data) {
  auto* launch = static_cast<Launch*>(data);
  // Signal 0: nobody is told when it ends.
  launch->process = clone(become_service, launch->stack + kStackBytes, CLONE_VM | CLONE_VFORK, data);
  if (launch->process < 0) launch->error = errno;
  leave(0);
}

// Creates the socket and executes the words with it; `token` (may be null) goes through a pipe.
Result<Fd> start(std::vector<std::string> words, const std::string& socket_path, const uint8_t* token,
                 size_t token_bytes) {
  Launch launch;
  for (std::string& word : words) launch.arguments.push_back(word.data());
  launch.arguments.push_back(nullptr);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, "LD_PRELOAD=", 11) != 0) launch.environment.push_back(*entry);
  }
  launch.environment.push_back(nullptr);

  auto listening = session::listen_at(socket_path);
  if (!listening.ok()) return listening.status();
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot make a pipe");
  Fd token_read(pipe_fds[0]), token_write(pipe_fds[1]);
  if (write(token_write.get(), token, token_bytes) != static_cast<ssize_t>(token_bytes)) {
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot pass the job token");
  }
  token_write.reset();
  Fd null_device(open("/dev/null", O_RDWR | O_CLOEXEC));
  launch.listening = listening->get();
  launch.token = token_read.get();
  launch.null_device = null_device.get();
  void* stacks = mmap(nullptr, 2 * kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stacks == MAP_FAILED) return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot start the service");
  launch.stack = static_cast<uint8_t*>(stacks);
  const int child = clone(spawn_orphan, launch.stack + 2 * kStackBytes, CLONE_VM | CLONE_VFORK, &launch);
  const int clone_error = errno;
  if (child > 0) {
    while (waitpid(child, nullptr, __WALL) < 0 && errno == EINTR) {
    }
  }
  munmap(stacks, 2 * kStackBytes);
  const int error = child < 0 ? clone_error : launch.error;
  if (error != 0) {
    unlink(socket_path.c_str());
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, error,
                                "cannot execute '%.80s' (it is the service that moves "
                                "the data). Install it, or set OFFPATH_SERVICE_PATH",
                                launch.arguments[0]);
  }
  return base::open_process(launch.process);
}

std::vector<std::string> service_words(const std::string& socket_path, const std::string& cores) {
  std::vector<std::string> words = wrapper_words();
  words.insert(words.end(), {find_service(), "--listen-fd", std::to_string(kListenFd), "--token-fd",
                             std::to_string(kTokenFd), "--socket-path", socket_path, "--cores", cores});
  return words;
}

}  // namespace

Result<Fd> start_service(const std::string& socket_path, const offpath_attach_params_t& params) {
  const auto dpus = session::own_dpus();
  if (!dpus.ok()) return dpus.status();
  const bool agent = !dpus->empty();  // it only passes on: any core will do
  const bool share = agent || Environment::flag("OFFPATH_SERVICE_SHARE", false);
  const auto cores = choose_cores(params.service_cores, share ? Sharing::allowed : Sharing::forbidden);
  if (!cores.ok()) return cores.status();
  std::vector<std::string> words = service_words(socket_path, cores->list);
  if (share) words.push_back(agent ? "--agent" : "--share");
  return start(std::move(words), socket_path, params.job_token, sizeof(params.job_token));
}

Status start_device_service(const std::string& socket_path) {
  const auto cores = choose_cores(nullptr, Sharing::allowed);
  if (!cores.ok()) return cores.status();
  std::vector<std::string> words = service_words(socket_path, cores->list);
  words.push_back("--devices");
  if (cores->shared || Environment::flag("OFFPATH_SERVICE_SHARE", false)) words.push_back("--share");
  return start(std::move(words), socket_path, nullptr, 0).status();
}

}  // namespace offpath::client
