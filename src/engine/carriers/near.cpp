// SPDX-License-Identifier: BSD-3-Clause
// A block for a member that this service serves: its worker is told where the block lies, and copies it. Another worker
// does so while this one goes on; so it gets the memory on a lease, which ends with the operation.
#include "engine/state.hpp"

namespace offpath::engine {

class Engine::State::Near : public Carrier {
 public:
  explicit Near(State& state) : s_(state) {}

  bool take(Operation& operation, uint32_t index, const Location& source, bool asked) override {
    const Export& block = operation.graph.exports[index];
    const Member& member = operation.team->spec.members[block.peer];
    if (!asked || !member.local) return false;
    ExportProgress& progress = operation.exports[index];
    const uint64_t bytes = operation.bytes_of(index);
    if (bytes > 0) progress.state = ExportState::sending;
    Location there = source;
    if (bytes > 0 && member.worker != s_.config.worker) {
      there.memory = progress.lease = std::make_shared<memory::Lease>(source.memory);
    }
    s_.offer_near(member.worker, progress.pull_id, std::move(there), bytes);
    if (bytes == 0) s_.resolve_export(operation, index, 0);
    return true;
  }

  void forget(Operation& operation, uint32_t index) override {
    if (const auto lease = std::exchange(operation.exports[index].lease, nullptr)) lease->end();
  }

 private:
  State& s_;
};

std::unique_ptr<Carrier> Engine::State::make_near() { return std::make_unique<Near>(*this); }

}  // namespace offpath::engine
