// SPDX-License-Identifier: BSD-3-Clause
#include "session/dpus.hpp"

#include "base/environment.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace offpath::session {

using base::Environment;
using base::Result;
using base::Status;

namespace {

bool is_address(const std::string& name) {
  return name.find(':') != std::string::npos || name.find_first_not_of("0123456789.") == std::string::npos;
}

// Where only one of the two has a domain, the rest decides.
bool same(const std::string& one, const std::string& other) {
  if (strcasecmp(one.c_str(), other.c_str()) == 0) return true;
  if (is_address(one) || is_address(other)) return false;
  const size_t dot = one.find('.'), other_dot = other.find('.');
  if ((dot == std::string::npos) == (other_dot == std::string::npos)) return false;
  return strcasecmp(one.substr(0, dot).c_str(), other.substr(0, other_dot).c_str()) == 0;
}

std::vector<std::string> own_names() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  std::vector<std::string> names{host};
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return names;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    char text[NI_MAXHOST];
    const int family = one->ifa_addr == nullptr ? AF_UNSPEC : one->ifa_addr->sa_family;
    const bool loopback = (one->ifa_flags & IFF_LOOPBACK) != 0;  // which every node has
    if ((family != AF_INET && family != AF_INET6) || loopback) continue;
    const socklen_t bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(one->ifa_addr, bytes, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0)
      names.emplace_back(text);
  }
  freeifaddrs(all);
  return names;
}

}  // namespace

std::vector<std::string> unquoted_parts(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  char quote = '\0';
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == separator && quote == '\0') {
      parts.emplace_back();
      continue;
    }
    parts.back() += c;
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      parts.back() += text[++i];
    } else if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    }
  }
  std::erase(parts, std::string());
  return parts;
}

Result<std::string> dpus_of(const std::string& list, std::span<const std::string> names) {
  std::string others;
  bool any = false;
  for (const std::string& entry : unquoted_parts(list, ';')) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == entry.size()) {
      return Status::error(OFFPATH_ERR_ARGUMENT, "'%.80s' is no entry of OFFPATH_DPUS. Write NODE=HOST:PORT",
                           entry.c_str());
    }
    const std::string node = entry.substr(0, equals);
    if (node == "*") {
      others = entry.substr(equals + 1);
      any = true;
    }
    const bool ours =
        std::any_of(names.begin(), names.end(), [&](const std::string& name) { return same(node, name); });
    if (ours) return entry.substr(equals + 1);
  }
  if (any) return others;
  return Status::error(OFFPATH_ERR_NO_SERVICE,
                       "node %.64s is not in the list of DPUs (so there is none for it). Add it, or leave the list out",
                       names.empty() ? "?" : names[0].c_str());
}

Result<std::string> own_dpus() {
  const std::string own = Environment::text("OFFPATH_DPU");
  if (!own.empty()) return own;
  const std::string list = Environment::text("OFFPATH_DPUS");
  if (list.empty()) return std::string();
  return dpus_of(list, own_names());
}

}  // namespace offpath::session
