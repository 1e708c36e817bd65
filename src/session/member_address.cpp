// SPDX-License-Identifier: BSD-3-Clause
#include "session/member_address.hpp"

#include "base/bytes.hpp"

#include <algorithm>

namespace offpath::session {
namespace {

constexpr size_t kIdBytes = 16;
constexpr size_t kFixedBytes = kIdBytes + 4 + 4;
}  // namespace

size_t MemberAddress::bytes() const { return kFixedBytes + fabric.size(); }

base::Result<std::vector<uint8_t>> MemberAddress::encode() const {
  if (bytes() > OFFPATH_ADDRESS_MAX_BYTES) {
    return base::Status::error(OFFPATH_ERR_NO_SERVICE,
                               "the fabric address has %zu bytes, more than fit (too many network devices). Name the "
                               "ones to use in OFFPATH_UCX_NET_DEVICES",
                               fabric.size());
  }
  std::vector<uint8_t> out(bytes());
  std::copy(service.begin(), service.end(), out.begin());
  base::ByteWriter writer(&out[kIdBytes]);
  writer.number(worker);
  writer.number(static_cast<uint32_t>(fabric.size()));
  std::copy(fabric.begin(), fabric.end(), out.begin() + kFixedBytes);
  return out;
}

base::Result<MemberAddress> MemberAddress::decode(std::span<const uint8_t> in) {
  const auto malformed = [&] {
    return base::Status::error(OFFPATH_ERR_ARGUMENT, "member address of %zu bytes is malformed", in.size());
  };
  if (in.size() < kFixedBytes) return malformed();
  MemberAddress out;
  std::copy_n(in.begin(), kIdBytes, out.service.begin());
  base::ByteReader reader(&in[kIdBytes]);
  out.worker = reader.number<uint32_t>();
  const auto fabric_bytes = reader.number<uint32_t>();
  if (fabric_bytes > in.size() - kFixedBytes) return malformed();
  const auto fabric = in.subspan(kFixedBytes, fabric_bytes);
  out.fabric.assign(fabric.begin(), fabric.end());
  return out;
}

}  // namespace offpath::session
