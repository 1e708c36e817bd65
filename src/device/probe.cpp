// SPDX-License-Identifier: BSD-3-Clause
#include "device/probe.hpp"

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/cores.hpp"
#include "base/environment.hpp"
#include "base/shell.hpp"
#include "device/frames.hpp"
#include "device/starter.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

namespace offpath::device {

using base::Fd;
using base::Result;
using base::Status;

namespace {

constexpr uint32_t kServedSeconds = 30;
constexpr uint64_t kMostBytes = 64 << 20;
constexpr uint64_t kFirstBytes = 64 << 10;
constexpr uint64_t kLongEnoughNs = 50000000;
constexpr size_t kBlockBytes = 256 << 10;
constexpr int kPings = 20;
constexpr uint32_t kMostAboutBytes = 4096;
constexpr const char* kExec = "exec:";

bool read_all(int in, void* out, size_t bytes) {
  for (auto* to = static_cast<uint8_t*>(out); bytes > 0;) {
    const ssize_t got = read(in, to, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool write_all(int out, const void* bytes_at, size_t bytes) {
  for (const auto* from = static_cast<const uint8_t*>(bytes_at); bytes > 0;) {
    const ssize_t put = write(out, from, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    from += put;
    bytes -= static_cast<size_t>(put);
  }
  return true;
}

std::array<uint8_t, 8> number_bytes(uint64_t value) {
  std::array<uint8_t, 8> bytes;
  base::ByteWriter(bytes.data()).number(value);
  return bytes;
}

// One answered command. `block` is what is moved.
bool serve_one(char kind, const ProbeEnds& ends, std::vector<uint8_t>& block) {
  uint64_t left = 0;
  if (kind != 'p') {
    std::array<uint8_t, 8> number;
    if (!ends.read(number.data(), number.size())) return false;
    left = std::min(base::ByteReader(number.data()).number<uint64_t>(), kMostBytes);
  }
  for (; left > 0; left -= std::min<uint64_t>(left, block.size())) {
    const size_t part = std::min<uint64_t>(left, block.size());
    if (!(kind == 'd' ? ends.write(block.data(), part) : ends.read(block.data(), part))) return false;
  }
  return kind == 'd' || ends.write(number_bytes(base::clock_ns()).data(), 8);
}

// The way there, however it was opened.
struct Way {
  Fd socket;
  Line line{-1};      // on it
  Fd said;            // standard error of a command
  std::string about;  // of a starter: its answer
  pid_t process = -1;

  ~Way() {
    socket.reset();
    if (process <= 0) return;
    kill(-process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
  // The last line that the command has said, if there is one.
  std::string last_words() const {
    char text[2048];
    pollfd wait{said.get(), POLLIN, 0};
    constexpr int kPatienceMs = 500;
    std::string all;
    while (said.valid() && poll(&wait, 1, kPatienceMs) > 0) {
      const ssize_t got = read(said.get(), text, sizeof(text));
      if (got <= 0) break;
      all.append(text, static_cast<size_t>(got));
    }
    return base::last_line(std::move(all));
  }
};

Status run(const std::string& command, Way& way) {
  int sockets[2], pipes[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0 || pipe2(pipes, O_CLOEXEC) != 0)
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot make a pipe");
  way.socket = Fd(sockets[0]);
  way.line = way.socket.get();
  way.said = Fd(pipes[0]);
  const Fd theirs(sockets[1]), error(pipes[1]);
  const auto process = base::start_shell(command, theirs, theirs, error);
  if (!process.ok()) return process.status();
  way.process = process.value();
  return {};
}

Status open_way(const std::string& dpu, int timeout_ms, Way& way) {
  if (dpu.rfind(kExec, 0) == 0) return run(dpu.substr(strlen(kExec)), way);
  const auto where = parse_starter(dpu);
  if (!where.ok()) return where.status();
  auto answered = introduce(where->entry, Purpose::probe, "", timeout_ms);
  if (!answered.ok()) return answered.status();
  way.socket = std::move(answered->connection.socket);
  way.line = answered->connection.line;
  way.about = std::move(answered->answer);
  return {};
}

class Prober {
 public:
  Prober(const Line& line, int timeout_ms) : line_(line), timeout_ms_(timeout_ms) {}

  Status about(std::string& out) {
    std::array<uint8_t, 4> head;
    if (const Status status = line_.receive(head.data(), head.size(), timeout_ms_); !status.ok()) return status;
    const auto bytes = base::ByteReader(head.data()).number<uint32_t>();
    if (bytes > kMostAboutBytes) return Status::error(OFFPATH_ERR_NO_SERVICE, "what answers there is not offpathd");
    out.resize(bytes);
    return line_.receive(out.data(), bytes, timeout_ms_);
  }
  // The fastest answer says most.
  Status ping(int64_t& offset_ns, uint64_t& latency_ns) {
    latency_ns = UINT64_MAX;
    for (int i = 0; i < kPings; ++i) {
      const uint64_t before_ns = base::clock_ns();
      uint64_t theirs_ns = 0;
      Status status = say('p', nullptr);
      if (status.ok()) status = hear_clock(theirs_ns);
      if (!status.ok()) return status;
      const uint64_t round_ns = base::clock_ns() - before_ns;
      if (round_ns / 2 >= latency_ns) continue;
      latency_ns = round_ns / 2;
      offset_ns = static_cast<int64_t>(theirs_ns - (before_ns + latency_ns));
    }
    return {};
  }
  // Bits per second; more bytes until it takes long enough to tell.
  Status rate(char kind, double& bits_per_s) {
    std::vector<uint8_t> block(kBlockBytes);
    for (uint64_t bytes = kFirstBytes;; bytes = std::min(4 * bytes, kMostBytes)) {
      const uint64_t before_ns = base::clock_ns();
      const auto number = number_bytes(bytes);
      Status status = say(kind, number.data());
      for (uint64_t left = bytes; left > 0 && status.ok(); left -= std::min<uint64_t>(left, block.size())) {
        const size_t part = std::min<uint64_t>(left, block.size());
        const iovec piece{block.data(), part};
        status = kind == 'u' ? line_.send(std::span(&piece, 1)) : line_.receive(block.data(), part, timeout_ms_);
      }
      uint64_t clock_ns = 0;
      if (status.ok() && kind == 'u') status = hear_clock(clock_ns);
      if (!status.ok()) return status;
      const uint64_t took_ns = base::clock_ns() - before_ns;
      bits_per_s = static_cast<double>(bytes) * 8e9 / static_cast<double>(std::max<uint64_t>(took_ns, 1));
      if (took_ns >= kLongEnoughNs || bytes == kMostBytes) return {};
    }
  }

 private:
  Status say(char kind, const uint8_t* number) {
    std::array<uint8_t, 9> text{static_cast<uint8_t>(kind)};
    if (number != nullptr) memcpy(text.data() + 1, number, 8);
    const iovec part{text.data(), number == nullptr ? size_t{1} : text.size()};
    return line_.send(std::span(&part, 1));
  }
  Status hear_clock(uint64_t& clock_ns) {
    std::array<uint8_t, 8> bytes;
    const Status status = line_.receive(bytes.data(), bytes.size(), timeout_ms_);
    clock_ns = base::ByteReader(bytes.data()).number<uint64_t>();
    return status;
  }

  const Line& line_;
  int timeout_ms_;
};

}  // namespace

std::string about_this_machine(uint32_t jobs, uint32_t most) {
  utsname name{};
  uname(&name);
  char text[512];
  snprintf(text, sizeof(text),
           "\"version\": \"%s\", \"machine\": \"%.20s\", \"host\": \"%.64s\", \"cores\": %ld, "
           "\"allowed_cores\": \"%.200s\", \"jobs\": %u, \"most_jobs\": %u",
           OFFPATH_VERSION, name.machine, name.nodename, sysconf(_SC_NPROCESSORS_ONLN),
           base::ranges_of(base::usable(base::every_core())).c_str(), jobs, most);
  return text;
}

void serve_probe_by_command() {
  const std::string about = about_this_machine(0, 0);
  std::array<uint8_t, 4> head;
  base::ByteWriter(head.data()).number(static_cast<uint32_t>(about.size()));
  if (write_all(STDOUT_FILENO, head.data(), head.size()) && write_all(STDOUT_FILENO, about.data(), about.size()))
    serve_probe({[](void* to, size_t bytes) { return read_all(STDIN_FILENO, to, bytes); },
                 [](const void* from, size_t bytes) { return write_all(STDOUT_FILENO, from, bytes); }});
}

void serve_probe(const Line& line) {
  serve_probe({[&](void* to, size_t bytes) { return line.receive(to, bytes, Line::kForever).ok(); },
               [&](const void* from, size_t bytes) {
                 const iovec part{const_cast<void*>(from), bytes};
                 return line.send(std::span(&part, 1)).ok();
               }});
}

void serve_probe(const ProbeEnds& ends) {
  alarm(kServedSeconds);
  std::vector<uint8_t> block(kBlockBytes);
  for (char kind; ends.read(&kind, 1) && (kind == 'p' || kind == 'd' || kind == 'u');) {
    if (!serve_one(kind, ends, block)) return;
  }
}

Result<std::string> probe(const std::string& dpu, int timeout_ms) {
  Way way;
  Status status = open_way(dpu, timeout_ms, way);
  Prober prober(way.line, timeout_ms);
  std::string about = way.about;
  int64_t offset_ns = 0;
  uint64_t latency_ns = 0;
  double up = 0, down = 0;
  if (status.ok() && about.empty()) status = prober.about(about);
  if (status.ok()) status = prober.ping(offset_ns, latency_ns);
  if (status.ok()) status = prober.rate('u', up);
  if (status.ok()) status = prober.rate('d', down);
  if (!status.ok()) {
    const std::string words = way.last_words();
    return words.empty() ? status : Status::error(OFFPATH_ERR_NO_SERVICE, "%.200s", words.c_str());
  }
  char measured[256];
  snprintf(measured, sizeof(measured),
           ", \"clock_offset_ns\": %lld, \"latency_ns\": %llu, \"to_bits_per_s\": %.0f, \"from_bits_per_s\": %.0f}",
           static_cast<long long>(offset_ns), static_cast<unsigned long long>(latency_ns), up, down);
  return "{" + about + measured;
}

}  // namespace offpath::device
