// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/ucx/ucx_endpoint.hpp"
#include "fabric/ucx/ucx_fabric.hpp"

#include "base/environment.hpp"

#include <ucp/api/ucp.h>

namespace offpath::fabric {
namespace {

using base::Environment;
using base::Result;
using base::Status;

Status ucx_error(const char* what, ucs_status_t status) {
  return Status::error(OFFPATH_ERR_NO_SERVICE, "UCX cannot %s: %s (services need it to reach each other). See 'ucx_info "
                       "-d' and OFFPATH_UCX_TLS", what, ucs_status_string(status));
}

class Context : public UcxContext {
 public:
  explicit Context(ucp_context_h context) : context_(context) {}
  ~Context() override { ucp_cleanup(context_); }

  Result<std::unique_ptr<Fabric>> make_endpoint() override {
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = UCS_THREAD_MODE_SINGLE;
    ucp_worker_h worker = nullptr;
    ucs_status_t status = ucp_worker_create(context_, &params, &worker);
    if (status != UCS_OK) return ucx_error("create a worker", status);
    auto endpoint = std::make_unique<UcxFabric>(worker);
    status = endpoint->open();
    if (status != UCS_OK) return ucx_error("open a worker for events", status);
    return std::unique_ptr<Fabric>(std::move(endpoint));
  }

 private:
  ucp_context_h context_;
};

}  // namespace

Result<std::unique_ptr<UcxContext>> UcxContext::create() {
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_config_read("OFFPATH", nullptr, &config);
  if (status != UCS_OK) return ucx_error("read its configuration", status);
  // Chunks are small and the receiver has asked for them, so a rendezvous for each would only add round trips, which
  // queue behind the data on a busy link (measured: docs/performance.md). A user's own choice stands.
  if (Environment::text("OFFPATH_UCX_RNDV_THRESH").empty() && Environment::text("UCX_RNDV_THRESH").empty()) {
    ucp_config_modify(config, "RNDV_THRESH", "inf");
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;
  params.name = "offpathd";
  ucp_context_h context = nullptr;
  status = ucp_init(&params, config, &context);
  ucp_config_release(config);
  if (status != UCS_OK) return ucx_error("start", status);
  return std::unique_ptr<UcxContext>(std::make_unique<Context>(context));
}

}  // namespace offpath::fabric
