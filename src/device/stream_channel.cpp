// SPDX-License-Identifier: BSD-3-Clause
#include "device/channel.hpp"
namespace offpath::device {
base::Result<std::shared_ptr<Channel>> open_stream_channel(base::Fd, const Description&, const Listener&) {
  return base::Status::error(OFFPATH_ERR_STATE, "no streams");
}
}
