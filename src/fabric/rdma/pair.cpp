// SPDX-License-Identifier: BSD-3-Clause
#include "base/random.hpp"
#include "fabric/rdma/device.hpp"

#include <algorithm>
#include <cstring>

namespace offpath::fabric::rdma {
namespace {

constexpr uint32_t kPacketNumbers = 0xffffff;
constexpr uint8_t kTimeout = 18;  // a second, for each of
constexpr uint8_t kTries = 7;
constexpr uint8_t kHops = 64;

}  // namespace

std::unique_ptr<Pair> Pair::make(Device& device, ibv_cq* completions) {
  ibv_qp_init_attr wanted{};
  wanted.qp_type = IBV_QPT_RC;
  wanted.send_cq = wanted.recv_cq = completions;
  wanted.cap.max_send_wr = kMostReads;
  wanted.cap.max_recv_wr = 1;
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  ibv_qp* const made = ibv_create_qp(device.domain(), &wanted);
  if (made == nullptr) return nullptr;
  PairAddress own;
  own.number = made->qp_num;
  base::fill_random(&own.first, sizeof(own.first));  // who does not know it cannot say anything here
  own.first &= kPacketNumbers;
  own.lid = device.attributes().lid;
  own.mtu = static_cast<uint8_t>(device.attributes().active_mtu);
  own.reads = device.reads_answered();
  memcpy(own.gid.data(), device.gid().raw, own.gid.size());
  std::unique_ptr<Pair> pair(new Pair(device, made, own));
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = device.port();
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  const bool begun = pair->change(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  return begun ? std::move(pair) : nullptr;
}

// On InfiniBand with an address that its own subnet knows; on Ethernet there is no other way.
bool Pair::needs_route(const PairAddress& other) const {
  const ibv_port_attr& port = device_.attributes();
  const bool by_route = port.link_layer == IBV_LINK_LAYER_ETHERNET || (port.flags & IBV_QPF_GRH_REQUIRED) != 0;
  constexpr size_t kSubnetBytes = 8;
  return by_route || memcmp(own_.gid.data(), other.gid.data(), kSubnetBytes) != 0;
}

bool Pair::join(const PairAddress& other) {
  if (joined_ || other.number == 0) return false;
  ibv_qp_attr there{};
  there.qp_state = IBV_QPS_RTR;
  there.path_mtu = static_cast<ibv_mtu>(std::clamp<int>(std::min(own_.mtu, other.mtu), IBV_MTU_256, IBV_MTU_4096));
  there.dest_qp_num = other.number;
  there.rq_psn = other.first & kPacketNumbers;
  there.max_dest_rd_atomic = own_.reads;
  there.min_rnr_timer = 12;
  there.ah_attr.dlid = other.lid;
  there.ah_attr.port_num = device_.port();
  there.ah_attr.is_global = needs_route(other) ? 1 : 0;
  there.ah_attr.grh.hop_limit = kHops;
  there.ah_attr.grh.sgid_index = device_.gid_index();
  memcpy(there.ah_attr.grh.dgid.raw, other.gid.data(), other.gid.size());
  ibv_qp_attr here{};
  here.qp_state = IBV_QPS_RTS;
  here.sq_psn = own_.first;
  here.timeout = kTimeout;
  here.retry_cnt = here.rnr_retry = kTries;
  here.max_rd_atomic = std::min(device_.reads_asked(), other.reads);
  joined_ = change(there, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) &&
            change(here, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC);
  return joined_;
}

bool Pair::read(uint64_t number, void* to, const ibv_mr& registered, size_t bytes, uint64_t from, uint32_t key) {
  ibv_sge place{reinterpret_cast<uint64_t>(to), static_cast<uint32_t>(bytes), registered.lkey};
  ibv_send_wr request{}, *refused = nullptr;
  request.wr_id = number;
  request.sg_list = &place;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_READ;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = from;
  request.wr.rdma.rkey = key;
  return ibv_post_send(pair_.get(), &request, &refused) == 0;
}

bool Pair::break_off() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  return change(attributes, IBV_QP_STATE);
}

}  // namespace offpath::fabric::rdma
