// SPDX-License-Identifier: BSD-3-Clause
// What the model knows about a machine. All of it is measured by `offpath calibrate` or given by the user; times are
// nanoseconds, lengths bytes, speeds bytes per nanosecond (GB/s). docs/guide-planner.md describes each field of the
// file.
#pragma once

#include "base/result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace offpath::model {

// What an MPI library does with a message; `family` chooses its algorithms (native.hpp).
struct Native {
  std::string family = "openmpi";
  double eager_bytes = 65536;     // longer messages wait for the receiver to answer (rendezvous)
  double chunk_bytes = 131072;    // pieces of longer ones
  double window_bytes = 262144;   // sockets take so much of one message before the receiver reads
  double post_ns = 2000;          // of a call
  double message_ns = 1500;       // processor time of one message, each side
  double send_ns_per_byte = 0.1;  // processor time, kernel included
  double receive_ns_per_byte = 0.15;
  double crossing_efficiency = 1;  // of links on which its connections of several nodes to several nodes cross
};

struct Service {
  bool own_cores = false;  // else on the ranks' cores
  double speed = 1;        // of its cores; 1: as the host's
  double chunk_bytes = 57344;
  double window_bytes = 917504;  // a connection takes so much before the receiver reads
  double post_ns = 1000;         // what the host spends on an operation
  double operation_ns = 3000;
  double step_ns = 300;
  double message_ns = 1500;
  double send_ns_per_byte = 0.2;     // reading from the client and sending
  double receive_ns_per_byte = 0.3;  // receiving and writing to the client
  double wake_ns = 15000;            // from an event to a worker that runs
  double host_wake_ns = 10000;       // from done to a host that goes on
  double crossing_efficiency = 1;    // as that of native MPI
};

// What services do to blocks that leave for other nodes, chunk by chunk. Of a byte so much is left.
struct Compression {
  double left = 1;  // 1: they leave as they are
  double encode_ns_per_byte = 0.5;
  double decode_ns_per_byte = 0.15;
};

struct Machine {
  double rate_bytes_per_ns = 0.125;  // of a node's link, each way
  double peak_bytes_per_ns = 2;      // of the burst
  double burst_bytes = 0;
  double latency_ns = 10000;
  double wire_efficiency = 0.99;  // user bytes / bytes on the wire
  double header_bytes = 80;
  double copy_bytes_per_ns = 10;   // memcpy
  double cma_bytes_per_ns = 5;     // from one process to another
  double reduce_bytes_per_ns = 4;  // one operand
  Native native;
  Service service;
  Compression compression;
  // What a block costs besides being read from a client's memory, or written to it, which the port charges.
  double beyond_memory(double ns_per_byte) const { return std::max(0.0, ns_per_byte - 1 / cma_bytes_per_ns); }
};

// Reads a machine file. The error says which field is missing or absurd, and what it should be.
base::Result<Machine> read_machine(const nlohmann::json& json);

}  // namespace offpath::model
