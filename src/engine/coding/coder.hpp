// SPDX-License-Identifier: BSD-3-Clause
// Coder: what compresses and decompresses for an engine: a chunk in, a chunk out, done at once or later, as a port answers.
// By default the codecs, on the worker's thread; the engines that DPUs have for it would be another one, which lets
// several chunks be under way. Called by the engine.
#pragma once

#include "kernels/codecs/coding.hpp"
#include "memory/port.hpp"

#include <memory>

namespace offpath::engine {

struct CodingJob {
  codecs::Method method;
  codecs::Bytes in;
  codecs::Room out;
  size_t bytes = 0;          // encode: so many of `out`; 0: there is no room for them
  uint32_t check = 0;        // of what arrives: the plain bytes, unless the method loses something
  double largest_error = 0;  // encode: if it does
};

// A chunk that was compressed.
struct Coded {
  uint64_t bytes = 0;
  uint64_t wire_bytes = 0;   // as which it left
  bool lossy = false;        // what arrives is something else
  double largest_error = 0;  // and this much off
  double saved_ns = 0;       // so much sooner the link is free again, by estimate; coding included. Less than 0: later
};

class Coder {
 public:
  virtual ~Coder() = default;
  // A bit for each codec that it can read (codecs::bit_of).
  virtual uint32_t readable() const = 0;
  // The job and its bytes belong to the coder until it has answered. Decoding fails with OFFPATH_ERR_DAMAGED where `in`
  // does not mean exactly as many bytes as `out` has; nothing else is written to, whatever comes.
  virtual memory::Outcome encode(CodingJob& job, memory::Ticket ticket) = 0;
  virtual memory::Outcome decode(CodingJob& job, memory::Ticket ticket) = 0;
  // Whether it always answers at once.
  virtual bool prompt() const = 0;
};

std::unique_ptr<Coder> make_coder();

}  // namespace offpath::engine
