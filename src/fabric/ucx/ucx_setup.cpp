// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/ucx/ucx_endpoint.hpp"
#include "fabric/ucx/ucx_fabric.hpp"

#include "base/environment.hpp"
#include "fabric/rdma.hpp"

#include <ucp/api/ucp.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

namespace offpath::fabric {
namespace {

using base::Result;
using base::Status;

Status ucx_error(const char* what, ucs_status_t status) {
  return Status::error(OFFPATH_ERR_NO_SERVICE,
                       "UCX cannot %s: %s (services need it to reach each other). See 'ucx_info "
                       "-d' and OFFPATH_UCX_TLS",
                       what, ucs_status_string(status));
}

// What we ask of UCX unless the user has said otherwise.
struct Preference {
  const char* name;
  const char* value;
};

constexpr Preference kPreferences[] = {
    // Chunks are small and the receiver has asked for them, so a rendezvous for each would only add round trips, which
    // queue behind the data on a busy link (measured: docs/performance/wire.md).
    {"UCX_RNDV_THRESH", "inf"},
    // When a TCP connection breaks under a zero-copy send, UCX 1.13 completes the send twice and aborts the process.
    // The
    // copy it saves is one inside the cache. On RDMA networks set OFFPATH_UCX_ZCOPY_THRESH=auto.
    {"UCX_ZCOPY_THRESH", "inf"},
    // A chunk is then one segment, one system call.
    {"UCX_TCP_TX_SEG_SIZE", "64k"},
};

// OFFPATH_UCX_X becomes UCX_X of this process, the service: UCX's own prefixes do not reach its transports.
void set_environment() {
  constexpr char kPrefix[] = "OFFPATH_UCX_";
  std::vector<std::string> ours;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, kPrefix, sizeof(kPrefix) - 1) == 0) ours.emplace_back(*entry + strlen("OFFPATH_"));
  }
  for (const std::string& entry : ours) {
    const size_t equals = entry.find('=');
    setenv(entry.substr(0, equals).c_str(), entry.c_str() + equals + 1, 1);
  }
  for (const Preference& preference : kPreferences) setenv(preference.name, preference.value, 0);
  const char* const own = secure_getenv("OFFPATH_UCX_TLS");
  const char* const wanted = secure_getenv("UCX_TLS");  // said for the program, unless it is our own
  const std::string transports =
      transports_for_services(wanted == nullptr ? "" : wanted, own != nullptr || !has_rdma());
  setenv("UCX_TLS", transports.c_str(), 1);
}

class UcxContext : public Context {
 public:
  explicit UcxContext(ucp_context_h context) : context_(context) {}
  ~UcxContext() override {
    if (!worker_stays_) ucp_cleanup(context_);
  }

  Result<std::unique_ptr<Fabric>> make_endpoint() override {
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = UCS_THREAD_MODE_SINGLE;
    ucp_worker_h worker = nullptr;
    ucs_status_t status = ucp_worker_create(context_, &params, &worker);
    if (status != UCS_OK) return ucx_error("create a worker", status);
    auto endpoint = std::make_unique<UcxFabric>(worker, worker_stays_);
    status = endpoint->open();
    if (status != UCS_OK) return ucx_error("open a worker for events", status);
    return std::unique_ptr<Fabric>(std::move(endpoint));
  }

 private:
  ucp_context_h context_;
  std::atomic<bool> worker_stays_ = false;
};

}  // namespace

std::string transports_for_services(const std::string& wanted, bool with_tcp) {
  constexpr const char* kInside[] = {"all", "sm", "shm", "mm", "posix", "sysv", "xpmem", "cma", "knem"};
  const std::string without = with_tcp ? "sm" : "tcp,sm";
  if (!wanted.empty() && wanted[0] == '^') return wanted + "," + without;
  std::string left;
  for (size_t begin = 0; begin < wanted.size();) {
    const size_t end = std::min(wanted.find(',', begin), wanted.size());
    const std::string word = wanted.substr(begin, end - begin);
    const auto is_word = [&](const char* inside) { return word == inside; };
    const bool goes = std::any_of(std::begin(kInside), std::end(kInside), is_word) || (word == "tcp" && !with_tcp);
    if (!goes) left += (left.empty() ? "" : ",") + word;
    begin = end + 1;
  }
  return left.empty() ? "^" + without : left;
}

Result<std::unique_ptr<Context>> open_ucx(const JobKey&) {
  if (const std::string wanted = base::Environment::text("OFFPATH_FABRIC_SECURITY"); !wanted.empty()) {
    return Status::error(
        OFFPATH_ERR_NO_SERVICE,
        "the fabric 'ucx' cannot give OFFPATH_FABRIC_SECURITY='%.40s' (it lets in whoever reaches it). "
        "Leave that out, or set OFFPATH_FABRIC=tcp",
        wanted.c_str());
  }
  set_environment();
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return ucx_error("read its configuration", status);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;
  params.name = "offpathd";
  ucp_context_h context = nullptr;
  status = ucp_init(&params, config, &context);
  ucp_config_release(config);
  if (status != UCS_OK) return ucx_error("start", status);
  return std::unique_ptr<Context>(std::make_unique<UcxContext>(context));
}

}  // namespace offpath::fabric
