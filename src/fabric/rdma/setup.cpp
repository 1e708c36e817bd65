// SPDX-License-Identifier: BSD-3-Clause
#include "base/environment.hpp"
#include "base/log.hpp"
#include "fabric/rdma.hpp"
#include "fabric/rdma/endpoint.hpp"
#include "fabric/tcp/tcp_fabric.hpp"

#include <filesystem>

namespace offpath::fabric {
namespace {

using base::Result;
using base::Status;

class RdmaContext : public Context {
 public:
  RdmaContext(std::unique_ptr<rdma::Device> device, std::unique_ptr<Context> tcp)
      : device_(std::move(device)), tcp_(std::move(tcp)) {}

  Result<std::unique_ptr<Fabric>> make_endpoint() override {
    auto tcp = tcp_->make_endpoint();
    if (!tcp.ok()) return tcp;
    auto endpoint = std::make_unique<rdma::Endpoint>(*device_, std::move(tcp.value()));
    const Status status = endpoint->open();
    if (status.ok()) return std::unique_ptr<Fabric>(std::move(endpoint));
    base::log_write(base::LogLevel::warn, "%s, so TCP carries all", status.text());
    return tcp_->make_endpoint();
  }

 private:
  std::unique_ptr<rdma::Device> device_;
  std::unique_ptr<Context> tcp_;
};

// "eth0,mlx5_0:1": the cards' names, and those of others.
struct Names {
  std::string card, others;
};

Names sorted(const std::string& devices) {
  Names names;
  for (size_t begin = 0; begin < devices.size();) {
    const size_t end = std::min(devices.find(',', begin), devices.size());
    const std::string name = devices.substr(begin, end - begin);
    std::error_code error;
    const bool is_card =
        std::filesystem::exists(std::string(kRdmaFolder) + "/" + name.substr(0, name.find(':')), error);
    if (is_card && names.card.empty()) names.card = name;
    if (!is_card) names.others += (names.others.empty() ? "" : ",") + name;
    begin = end + 1;
  }
  return names;
}

}  // namespace

RdmaCounts rdma_counts(const Fabric& endpoint) { return dynamic_cast<const rdma::Endpoint&>(endpoint).counts(); }

Result<std::unique_ptr<Context>> open_rdma(const JobKey& key) {
  const std::string wanted = base::Environment::text("OFFPATH_FABRIC_SECURITY");
  if (!wanted.empty() && wanted != "user-data-unprotected") {
    return Status::error(
        OFFPATH_ERR_NO_SERVICE,
        "the fabric 'rdma' cannot give OFFPATH_FABRIC_SECURITY='%.40s' (cards read long user data as it "
        "is). Leave that out, or set OFFPATH_FABRIC=tcp",
        wanted.c_str());
  }
  const Names names = sorted(base::Environment::text("OFFPATH_UCX_NET_DEVICES"));
  auto device = rdma::Device::open(names.card);
  if (!device.ok()) return device.status();
  auto tcp = open_tcp_on(key, names.others);
  if (!tcp.ok()) return tcp.status();
  return std::unique_ptr<Context>(std::make_unique<RdmaContext>(std::move(device.value()), std::move(tcp.value())));
}

}  // namespace offpath::fabric
