// SPDX-License-Identifier: BSD-3-Clause
#include "model/virtual_group.hpp"

namespace offpath::model {

VirtualGroup::VirtualGroup(Place place, std::shared_ptr<VirtualMembers> members, uint32_t own)
    : place_(std::move(place)), members_(std::move(members)), own_(own) {
  (*members_)[own] = this;
}

VirtualGroup::~VirtualGroup() { members_->erase(own_); }

bool VirtualGroup::push(uint64_t task, uint32_t chunk, fabric::Bytes bytes) {
  if (under_way_ == kMostUnderWay) return false;
  ++under_way_;
  ++counts_.sent;
  const Machine& m = place_.machine;
  place_.account.charge(m.service.message_ns +
                        static_cast<double>(bytes.size()) * m.beyond_memory(m.service.send_ns_per_byte));
  const auto made = std::make_shared<Chunk>(Chunk{{task, chunk, own_}, {bytes.begin(), bytes.end()}});
  place_.account.then([this, made] { leave(made); });
  return true;
}

void VirtualGroup::leave(const std::shared_ptr<const Chunk>& chunk) {
  const Machine& m = place_.machine;
  std::vector<uint32_t> others;
  for (const auto& [number, member] : *members_) {
    if (number != own_) others.push_back(member->place_.node);
  }
  const double bytes = m.header_bytes + static_cast<double>(chunk->bytes.size()) / m.wire_efficiency;
  place_.network.multicast(place_.connection, place_.node, others, bytes, [members = members_, own = own_, chunk] {
    for (const auto& [number, member] : *members) {
      if (number != own) {
        member->arrived_.push_back(chunk);
      } else if (member->under_way_ > 0) {
        --member->under_way_;
      }
      member->place_.ring();
    }
  });
}

bool VirtualGroup::progress(uint64_t, fabric::Hearer& hearer) {
  const Machine& m = place_.machine;
  bool any = false;
  for (; !arrived_.empty(); any = true) {
    const auto chunk = std::move(arrived_.front());
    arrived_.pop_front();
    ++counts_.received;
    place_.account.charge(m.service.message_ns +
                          static_cast<double>(chunk->bytes.size()) * m.beyond_memory(m.service.receive_ns_per_byte));
    hearer.on_chunk(chunk->label, chunk->bytes);
  }
  return any;
}

}  // namespace offpath::model
