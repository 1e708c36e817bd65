// SPDX-License-Identifier: BSD-3-Clause
#include "session/member_address.hpp"

#include <algorithm>

namespace offpath::session {
namespace {

constexpr size_t kFixedBytes = 16 + 4 + 4;

void put_u32(uint8_t* out, uint32_t value) {
  for (int i = 0; i < 4; ++i) out[i] = static_cast<uint8_t>(value >> (8 * i));
}

uint32_t get_u32(const uint8_t* in) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= static_cast<uint32_t>(in[i]) << (8 * i);
  return value;
}

}  // namespace

base::Result<std::vector<uint8_t>> MemberAddress::encode() const {
  if (kFixedBytes + fabric.size() > OFFPATH_ADDRESS_MAX_BYTES) {
    return base::Status::error(OFFPATH_ERR_NO_SERVICE,
                               "the fabric address has %zu bytes, more than fit (too many network devices). Name the "
                               "ones to use in OFFPATH_UCX_NET_DEVICES",
                               fabric.size());
  }
  std::vector<uint8_t> out(kFixedBytes + fabric.size());
  std::copy(service.begin(), service.end(), out.begin());
  put_u32(&out[16], worker);
  put_u32(&out[20], static_cast<uint32_t>(fabric.size()));
  std::copy(fabric.begin(), fabric.end(), out.begin() + kFixedBytes);
  return out;
}

base::Result<MemberAddress> MemberAddress::decode(std::span<const uint8_t> in) {
  if (in.size() < kFixedBytes || get_u32(&in[20]) > in.size() - kFixedBytes) {
    return base::Status::error(OFFPATH_ERR_ARGUMENT, "member address of %zu bytes is malformed", in.size());
  }
  MemberAddress out;
  std::copy_n(in.begin(), 16, out.service.begin());
  out.worker = get_u32(&in[16]);
  const auto fabric = in.subspan(kFixedBytes, get_u32(&in[20]));
  out.fabric.assign(fabric.begin(), fabric.end());
  return out;
}

}  // namespace offpath::session
