// SPDX-License-Identifier: BSD-3-Clause
// Config: what an engine is told when it is made. Plain data.
#pragma once

#include "base/starvation.hpp"
#include "kernels/codecs/choice.hpp"
#include "kernels/helpers.hpp"
#include "wire/message.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>

namespace offpath::engine {

class Coder;
class Doer;

struct Config {
  size_t chunk_bytes = 56 << 10;             // one segment of UCX over TCP: nothing to assemble; at least 64
  uint32_t chunks_in_flight = 16;            // per stream
  uint32_t pool_chunks = 128;                // per worker, both directions together; at least 2
  size_t file_chunk_bytes = 1 << 20;         // the same between memory and files
  uint32_t file_chunks = 16;                 // per worker
  size_t batched_bytes = 4 << 10;            // longest piece of a block that shares a fabric message with others
  size_t pushed_bytes = wire::kPushedBytes;  // longest block that is sent unasked; 0: none. The same everywhere
  size_t parked_limit = 1 << 16;             // messages that came before the operation or team they are for
  uint32_t arrivals_radix = 8;               // of the rounds of arrivals; at least 2. The same everywhere
  uint64_t silence_ns = 0;                   // see watch(); 0: for ever
  uint64_t scratch_cache_bytes = 64 << 20;   // memory for partial results that is kept for the next operation
  uint32_t worker = UINT32_MAX;              // the own index among the workers of this service
  std::function<void()> wake = [] {};        // called by ports that end an access later, from any thread
  kernels::Helpers* helpers = nullptr;       // who helps with computations; outlives the engine. Null: nobody
  Doer* doer = nullptr;                      // who reduces; outlives the engine. Null: the kernels, here
  codecs::Wish compress;                     // what streams to other nodes are coded with
  Coder* coder = nullptr;                    // who does that; outlives the engine. Null: the codecs, here
  uint32_t multicast_chains = 0;             // that send at the same time; the team's first node decides. 0: chains.hpp
  uint64_t multicast_rate = 0;               // bytes per second that links take; 0: what devices say
  uint32_t multicast_groups = 16;            // joined at most, as switches have small tables
  std::function<uint64_t()> own_waits_ns = base::own_waits_ns;  // of the thread that runs it
  std::function<uint64_t()> now_ns;  // a clock, for what pays, and for multicast. Null: the system's
};

}  // namespace offpath::engine
