// SPDX-License-Identifier: BSD-3-Clause
// What a service, or the agent of one on another machine, publishes for those who watch it (link.hpp: observe): one memory
// for all observers, which they can only read. Fixed offsets, little endian, checked by golden tests;
// python/offpath/telemetry/observation.py reads it, by the same table (words/observed.def).
//
//   [ObservationHeader][page of worker 0][page of worker 1]...      page: [WorkerRecord][ClientRecord x
//   clients_per_worker]
//
// A page is written by its worker alone, or by the agent, every tick_ms while anybody watches: `generation` becomes odd, the rest is
// written, `generation` becomes even. A reader whose copy has begun or ended with another, or an odd, one copies again.
// Counters count from the start of the worker or the client. Times are CLOCK_MONOTONIC of the node in ns.
#pragma once

#include "base/standing.hpp"
#include "session/layout.hpp"

namespace offpath::session {

inline constexpr uint64_t kObservationMagic = 0x314f50'4646'4f00ULL;  // "\0OFFPO1"
inline constexpr uint32_t kObservationVersion = 2;
inline constexpr uint32_t kObservedClients = 512;  // of a worker
inline constexpr uint32_t kUnknownRank = UINT32_MAX;

struct ObservationHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t worker_count;
  uint64_t bytes;       // of all
  uint64_t page_bytes;  // of a worker
  uint32_t clients_per_worker;
  uint32_t tick_ms;
  int32_t process;  // of the service
  uint32_t shares_cores;
  uint64_t started_ns;
};
static_assert(sizeof(ObservationHeader) == 56);

struct alignas(64) WorkerRecord {
#define OFFPATH_OBSERVED_WORKER(bits, name, metric, about) Atomic##bits name;
#include <offpath/words/observed.def>
};
static_assert(sizeof(WorkerRecord) == 192);

// The oldest operation in flight, and what holds it up.
struct OldestRecord {
  Atomic64 age_ns;  // to within some ms
  Atomic64 bytes;   // that its client gets or, if none, gives
  Atomic32 kind;    // OpKind; none: nothing is in flight
  Atomic32 form;    // collective: offpath_collective_kind_t; remote: offpath_remote_kind_t
  Atomic32 waits;   // base::Waits
  Atomic32 members_count;
  Atomic32 members[base::kNamedMembers];  // the first of these, by rank in the operation's team
  Atomic32 team_size;
  Atomic32 reserved;
};
static_assert(sizeof(OldestRecord) == 72);

struct alignas(64) ClientRecord {
#define OFFPATH_OBSERVED_CLIENT(bits, name, metric, about) Atomic##bits name;
#include <offpath/words/observed.def>
  OldestRecord oldest;
  uint64_t reserved[12];
};
static_assert(sizeof(ClientRecord) == 256);

inline constexpr size_t kObservationHeaderBytes = 4096;
inline constexpr size_t kPageBytes = sizeof(WorkerRecord) + kObservedClients * sizeof(ClientRecord);

struct WorkerPage {
  WorkerRecord worker;
  ClientRecord clients[kObservedClients];
};
static_assert(sizeof(WorkerPage) == kPageBytes);

// By who owns the page; `write` fills its records.
template <typename Write>
void rewrite(WorkerPage& page, const Write& write) {
  Atomic64& generation = page.worker.generation;
  const uint64_t before = generation.load(std::memory_order_relaxed);
  generation.store(before + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  write();
  generation.store(before + 2, std::memory_order_release);
}

}  // namespace offpath::session
