// SPDX-License-Identifier: BSD-3-Clause
// The RDMA fabric: the fabric tcp, but user data of more than kShortBytes is read by the receiver's card from where it lies,
// without a processor. Who meets whom, who is lost, and all that is interpreted go over TCP, so nobody is served who has not
// proved the job's key (docs/design/0047-rdma.md). What cannot go so, goes over TCP as before, for each payload by itself.
#pragma once

#include "fabric/fabric.hpp"

#include <memory>

namespace offpath::fabric {

struct RdmaCounts {
  uint64_t read_bytes = 0;     // by the card to where they belong: no processor copied them, on either side
  uint64_t bounced_bytes = 0;  // read by the card to memory of ours, and copied from there
  uint64_t other_bytes = 0;    // of payloads that were sent over TCP
  uint64_t registrations = 0;  // of the process
  uint64_t hits = 0;           // of the process: memory that was registered already
};

// Of an endpoint of that fabric.
RdmaCounts rdma_counts(const Fabric& endpoint);

// Refused where OFFPATH_FABRIC_SECURITY asks for what a card does not do. Devices of both kinds may stand in
// OFFPATH_UCX_NET_DEVICES.
base::Result<std::unique_ptr<Context>> open_rdma(const JobKey& key);

}  // namespace offpath::fabric
