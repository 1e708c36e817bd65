// SPDX-License-Identifier: BSD-3-Clause
#include "attach/loss.hpp"

#include <tuple>

namespace offpath::attach {

Loss loss_of(const char* host, const offpath_session_counters_t& counters) {
  const std::string service = "the service on host " + std::string(host);
  const std::string last_words = "its last words: OFFPATH_SERVICE_LOG";
  if (counters.silence_ms == 0) return {service + " was lost", "For " + last_words};
  return {service + " gave no sign of life for " + std::to_string(counters.silence_ms) + " ms and was ended",
          "Check its node and the network between services, leave it a core of its own, or more time by "
          "OFFPATH_SERVICE_SILENCE_MS; " +
              last_words};
}

Loss starved_of(const char* host, uint64_t starved_ns, uint32_t neighbours) {
  return {"the service on host " + std::string(host) + " waits for a processor: it was ready to run for " +
              std::to_string(starved_ns / 1000000) + " ms and got none, beside " + std::to_string(neighbours) +
              " ranks of this node",
          "Leave it a core of its own (OFFPATH_SERVICE_CORES), or start fewer ranks than the node has cores"};
}

bool says_more(const Parting& one, const Parting& other) {
  const auto order = [](const Parting& parting) {
    return std::tuple(!parting, parting.silence_ms == 0, parting.here, parting.there);
  };
  return order(one) < order(other);
}

Loss parting_of(const char* host, const char* other, uint64_t silence_ms) {
  const std::string services = "the service on host " + std::string(host);
  const std::string cure = "Check the network between the services (OFFPATH_UCX_NET_DEVICES)";
  if (silence_ms == 0) return {services + " lost the connection to that on host " + other, cure};
  return {services + " heard nothing of that on host " + other + " for " + std::to_string(silence_ms) +
              " ms and gave it up",
          cure + ", or give them more time by OFFPATH_SERVICE_SILENCE_MS"};
}

}  // namespace offpath::attach
