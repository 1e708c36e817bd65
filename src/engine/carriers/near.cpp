// SPDX-License-Identifier: BSD-3-Clause
// A block for a member that this service serves: its worker is told where the block lies, and copies it. Another worker
// does so while this one goes on; so it gets the memory on a lease, which ends with the operation.
#include "engine/carriers/carrier.hpp"

#include <utility>

namespace offpath::engine {
namespace {

class Near : public Carrier {
 public:
  explicit Near(Blocks& blocks) : blocks_(blocks) {}

  bool take(const Offer& offer) override {
    if (!offer.asked || !offer.near) return false;
    if (offer.bytes == 0) return blocks_.end_empty(offer.block), true;
    Carried& carried = blocks_.carry(offer.block, *this);
    Location there = offer.source;
    if (!offer.same_worker) there.memory = carried.lease = std::make_shared<memory::Lease>(offer.source.memory);
    blocks_.offer_near(offer.block, std::move(there), offer.bytes);
    return true;
  }

  void forget(Carried& carried) override {
    if (const auto lease = std::exchange(carried.lease, nullptr)) lease->end();
  }

 private:
  Blocks& blocks_;
};

}  // namespace

std::unique_ptr<Carrier> make_near(Blocks& blocks, Sender&) { return std::make_unique<Near>(blocks); }

}  // namespace offpath::engine
