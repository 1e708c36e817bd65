// SPDX-License-Identifier: BSD-3-Clause
#include "base/node.hpp"

#include "base/hash.hpp"
#include "base/process.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

namespace offpath::base {
namespace {

uint64_t mix(uint64_t hash, std::string_view text) {
  return hash_on(hash, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

}  // namespace

std::string boot_id() {
  const std::string id = text_of_file("/proc/sys/kernel/random/boot_id");
  return id.substr(0, id.find('\n'));
}

uint64_t node_key() {
  char host[64] = "";
  if (gethostname(host, sizeof(host) - 1) != 0) host[0] = '?';
  uint64_t key = mix(mix(kHashOfNothing, boot_id()), host);
  struct stat network {};
  if (stat("/proc/self/ns/net", &network) == 0) key = mix(key, std::to_string(network.st_ino));
  return key;
}

}  // namespace offpath::base
