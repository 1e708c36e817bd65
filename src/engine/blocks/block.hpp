// SPDX-License-Identifier: BSD-3-Clause
// What a block is to those who move it: a name, where it lies, and what a carrier leaves with it. Plain data.
#pragma once

#include "memory/lease.hpp"
#include "memory/port.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace offpath::engine {

class Carrier;
struct Operation;

// Memory that stays as long as this.
struct Location {
  std::shared_ptr<memory::Port> memory;
  uint64_t address = 0;
};

// The name of a block. Carriers do not look into it.
struct Block {
  Operation* operation = nullptr;
  uint32_t index = 0;
};

// What stays with a block for the carrier that has taken it.
struct Carried {
  Carrier* by = nullptr;
  uint64_t transfer = 0;
  std::shared_ptr<memory::Lease> lease;
  std::optional<uint64_t> decode_ns;  // its receiver has all, and has spent so long on decoding it
};

// Goes on with what a port has done. Null: the operation is over; what the access has used is to be given back.
using Then = std::function<void(Operation*, const base::Status&)>;

}  // namespace offpath::engine
