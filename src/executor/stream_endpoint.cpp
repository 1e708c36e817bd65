// SPDX-License-Identifier: BSD-3-Clause
#include "executor/endpoint.hpp"
namespace offpath::executor {
base::Result<std::unique_ptr<Endpoint>> open_stream_endpoint(int, device::Description, ReplyTargets&) {
  return base::Status::error(OFFPATH_ERR_STATE, "no streams");
}
}
