// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tcp/endpoint.hpp"

#include "base/environment.hpp"

#include <sodium.h>

namespace offpath::fabric {
namespace tcp {
namespace {

class TcpContext : public Context {
 public:
  explicit TcpContext(Options options) : options_(std::move(options)) {}

  base::Result<std::unique_ptr<Fabric>> make_endpoint() override {
    auto endpoint = std::make_unique<Endpoint>(options_);
    const base::Status status = endpoint->open();
    if (!status.ok()) return status;
    return std::unique_ptr<Fabric>(std::move(endpoint));
  }

 private:
  const Options options_;
};

}  // namespace

std::unique_ptr<Context> make_context(Options options) {
  [[maybe_unused]] const int started = sodium_init();  // finds the fastest of its ways
  return std::make_unique<TcpContext>(std::move(options));
}

}  // namespace tcp

base::Result<std::unique_ptr<Context>> open_tcp(const JobKey& key) {
  return open_tcp_on(key, base::Environment::text("OFFPATH_UCX_NET_DEVICES"));
}

base::Result<std::unique_ptr<Context>> open_tcp_on(const JobKey& key, const std::string& devices) {
  const auto security = seal::wanted_security();
  if (!security.ok()) return security.status();
  if (sodium_init() < 0) return base::Status::error(OFFPATH_ERR_NO_SERVICE, "libsodium does not start");
  tcp::Options options;
  options.secret = seal::secret_for(seal::Use::fabric, key);
  options.security = security.value();
  options.devices = devices;
  const auto places = tcp::own_places(options.devices);  // a wrong name is known before anybody waits
  if (!places.ok()) return places.status();
  return tcp::make_context(std::move(options));
}

}  // namespace offpath::fabric
