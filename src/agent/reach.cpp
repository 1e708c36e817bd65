// SPDX-License-Identifier: BSD-3-Clause
#include "agent/reach.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/shell.hpp"
#include "device/starter.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

namespace offpath::agent {

using base::Fd;
using base::Result;
using base::Status;

namespace {

constexpr size_t kMostLineBytes = 16 << 10;
constexpr const char* kExec = "exec:";

std::optional<std::string> field(const std::string& line, const std::string& name) {
  const std::string key = "\"" + name + "\": ";
  const size_t at = line.find(key);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = at + key.size();
  if (begin >= line.size()) return std::nullopt;
  if (line[begin] != '"') return line.substr(begin, line.find_first_of(",}", begin) - begin);
  const size_t end = line.find('"', begin + 1);
  if (end == std::string::npos) return std::nullopt;
  return line.substr(begin + 1, end - begin - 1);
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Nothing: that is no address.
std::optional<std::vector<uint8_t>> bytes_of(const std::string& hex) {
  if (hex.empty() || hex.size() % 2 != 0 || hex.size() > size_t{2} * OFFPATH_ADDRESS_MAX_BYTES) return std::nullopt;
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    const int high = digit(hex[i]), low = digit(hex[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<uint8_t>(high * 16 + low));
  }
  return bytes;
}

// Everything that the command says until its end, or the end of the first line. Errors: why there is none.
Result<std::string> read_line(int from, uint64_t end_ns) {
  std::string out;
  while (out.find('\n') == std::string::npos && out.size() < kMostLineBytes) {
    const uint64_t now_ns = base::clock_ns();
    pollfd wait{from, POLLIN, 0};
    const int left_ms = now_ns >= end_ns ? 0 : static_cast<int>((end_ns - now_ns) / 1000000 + 1);
    const int ready = poll(&wait, 1, left_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return Status::error(OFFPATH_ERR_NO_SERVICE, "it says nothing");
    char text[1024];
    const ssize_t got = read(from, text, sizeof(text));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    out.append(text, static_cast<size_t>(got));
  }
  return out.substr(0, out.find('\n'));
}

struct Child {
  pid_t process = -1;
  Fd input, output, error;
};

Result<Child> run(const std::string& command) {
  int in[2], out[2], said[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0)
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot make a pipe");
  Fd in_read(in[0]), in_write(in[1]);
  if (pipe2(out, O_CLOEXEC) != 0) return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot make a pipe");
  Fd out_read(out[0]), out_write(out[1]);
  if (pipe2(said, O_CLOEXEC) != 0) return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot make a pipe");
  Fd said_read(said[0]), said_write(said[1]);
  Child child;
  const auto process = base::start_shell(command, in_read, out_write, said_write);
  if (!process.ok()) return process.status();
  child.process = process.value();
  child.input = std::move(in_write);
  child.output = std::move(out_read);
  child.error = std::move(said_read);
  return child;
}

// By itself until then, or now.
void end(Child& child, uint64_t end_ns) {
  constexpr timespec kNap{0, 2000000};
  child.output.reset();
  while (waitpid(child.process, nullptr, WNOHANG) == 0) {
    if (base::clock_ns() >= end_ns) kill(-child.process, SIGKILL);
    nanosleep(&kNap, nullptr);
  }
}

// What it has said on its standard error last; empty: nothing.
std::string last_words(const Fd& error) {
  char text[2048];
  pollfd wait{error.get(), POLLIN, 0};
  const ssize_t got = poll(&wait, 1, 0) > 0 ? read(error.get(), text, sizeof(text)) : 0;
  std::string words = base::last_line(std::string(text, got > 0 ? static_cast<size_t>(got) : 0));
  const std::string name = "offpathd: ";
  return words.starts_with(name) ? words.substr(name.size()) : words;
}

// `why` may say what to do. Else: the command does by hand what it does here only where the job's control groups allow the same.
Status unreachable(const std::string& dpu, const std::string& why) {
  if (why.find(". ") != std::string::npos) {
    return Status::error(OFFPATH_ERR_NO_SERVICE, "the DPU '%.60s' cannot be reached: %.160s", dpu.c_str(), why.c_str());
  }
  return Status::error(OFFPATH_ERR_NO_SERVICE,
                       "the DPU '%.60s' cannot be reached: %.90s. Run that command by hand inside the job, or leave "
                       "OFFPATH_DPU out",
                       dpu.c_str(), why.c_str());
}

}  // namespace

std::string to_line(const Reached& reached) {
  std::string hex;
  for (const auto& address : reached.addresses) {
    if (!hex.empty()) hex += ',';
    for (const uint8_t byte : address) {
      hex += "0123456789abcdef"[byte >> 4];
      hex += "0123456789abcdef"[byte & 15];
    }
  }
  return "{\"address\": \"" + hex + "\", \"version\": \"" + reached.version + "\", \"machine\": \"" + reached.machine +
         "\", \"cores\": " + std::to_string(reached.cores) + "}";
}

Result<Reached> from_line(const std::string& line) {
  const auto address = field(line, "address"), version = field(line, "version"), machine = field(line, "machine"),
             cores = field(line, "cores");
  const auto wrong = [&] {
    return Status::error(OFFPATH_ERR_NO_SERVICE, "it says '%.120s' instead of where the service is", line.c_str());
  };
  if (!address || !version || !machine || !cores) return wrong();
  Reached out;
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = address->find(',', begin);
    auto bytes = bytes_of(address->substr(begin, end - begin));
    if (!bytes) return wrong();
    out.addresses.push_back(std::move(*bytes));
  }
  out.version = *version;
  out.machine = *machine;
  out.cores = static_cast<uint32_t>(strtoul(cores->c_str(), nullptr, 10));
  return out;
}

Result<Reached> reach(const std::string& dpu, const uint8_t (&token)[OFFPATH_TOKEN_BYTES], int timeout_ms) {
  if (dpu.rfind(kExec, 0) != 0) {
    const auto line = device::ask_starter(dpu, token, timeout_ms);
    const auto reached = line.ok() ? from_line(line.value()) : line.status();
    if (reached.ok()) return reached;
    return Status::error(OFFPATH_ERR_NO_SERVICE, "the DPU %.60s: %.180s. See: offpath dpus check", dpu.c_str(),
                         reached.status().text());
  }
  const uint64_t end_ns = base::clock_ns() + static_cast<uint64_t>(timeout_ms) * 1000000;
  auto child = run(dpu.substr(strlen(kExec)));
  if (!child.ok()) return child.status();
  [[maybe_unused]] const ssize_t sent = send(child->input.get(), token, sizeof(token), MSG_NOSIGNAL);
  child->input.reset();
  const auto line = read_line(child->output.get(), end_ns);
  auto reached = line.ok() ? from_line(line.value()) : line.status();
  end(child.value(), line.ok() ? end_ns : 0);
  if (reached.ok()) return reached;
  const std::string words = last_words(child->error);
  return unreachable(dpu, words.empty() ? reached.status().text() : words);
}

}  // namespace offpath::agent
