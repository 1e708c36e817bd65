// SPDX-License-Identifier: BSD-3-Clause
#include "node.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>

namespace offpath::attach {
namespace {

CoreSet affinity_of(pid_t process) {
  CoreSet cores;
  cpu_set_t set;
  static_assert(sizeof(set) * 8 == kMaxCores);
  if (sched_getaffinity(process, sizeof(set), &set) != 0) return cores;
  for (size_t core = 0; core < kMaxCores; ++core) cores[core] = CPU_ISSET(core, &set);
  return cores;
}

uint64_t mix(uint64_t hash, std::string_view bytes) {  // FNV-1a
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

uint64_t node_key(const HostName& host) {
  uint64_t key = mix(0xcbf29ce484222325u, boot_id());
  key = mix(key, host.data());
  struct stat network {};
  if (stat("/proc/self/ns/net", &network) == 0) key = mix(key, std::to_string(network.st_ino));
  return key;
}

}  // namespace

std::string boot_id() {
  char text[64];
  const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  const ssize_t bytes = read(fd, text, sizeof(text));
  close(fd);
  const std::string id(text, bytes > 0 ? static_cast<size_t>(bytes) : 0);
  return id.substr(0, id.find('\n'));
}

HostName host_name() {
  HostName name{};
  if (gethostname(name.data(), name.size() - 1) != 0) name[0] = '?';
  return name;
}

NodeRecord own_node() {
  const HostName host = host_name();
  const CoreSet bound = affinity_of(0);
  return {node_key(host), host, bound, bound | affinity_of(getppid())};
}

}  // namespace offpath::attach
