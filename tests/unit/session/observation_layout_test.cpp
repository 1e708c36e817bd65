// SPDX-License-Identifier: BSD-3-Clause
// Golden offsets and sizes of what observers read. A change here needs a new kObservationVersion, and the same change
// in python/offpath/telemetry/observation.py.
#include "session/observation.hpp"

#include <gtest/gtest.h>

namespace offpath::session {
namespace {

#define EXPECT_AT(type, field, expected) EXPECT_EQ(offsetof(type, field), size_t{expected}) << #type "." #field

TEST(ObservationLayout, Constants) {
  EXPECT_EQ(kObservationMagic, 0x314f504646'4f00ULL);
  EXPECT_EQ(kObservationVersion, 1U);
  EXPECT_EQ(kObservedClients, 512U);
  EXPECT_EQ(base::kNamedMembers, 8U);
  EXPECT_EQ(kObservationHeaderBytes, 4096U);
  EXPECT_EQ(kPageBytes, 131200U);
}

TEST(ObservationLayout, Waits) {
  EXPECT_EQ(static_cast<int>(base::Waits::nothing), 0);
  EXPECT_EQ(static_cast<int>(base::Waits::earlier), 1);
  EXPECT_EQ(static_cast<int>(base::Waits::not_posted), 2);
  EXPECT_EQ(static_cast<int>(base::Waits::silent), 3);
  EXPECT_EQ(static_cast<int>(base::Waits::sends), 4);
  EXPECT_EQ(static_cast<int>(base::Waits::takes), 5);
  EXPECT_EQ(static_cast<int>(base::Waits::service), 6);
  EXPECT_EQ(static_cast<int>(base::Waits::answers), 7);
}

TEST(ObservationLayout, Header) {
  EXPECT_AT(ObservationHeader, magic, 0);
  EXPECT_AT(ObservationHeader, version, 8);
  EXPECT_AT(ObservationHeader, worker_count, 12);
  EXPECT_AT(ObservationHeader, bytes, 16);
  EXPECT_AT(ObservationHeader, page_bytes, 24);
  EXPECT_AT(ObservationHeader, clients_per_worker, 32);
  EXPECT_AT(ObservationHeader, tick_ms, 36);
  EXPECT_AT(ObservationHeader, process, 40);
  EXPECT_AT(ObservationHeader, shares_cores, 44);
  EXPECT_AT(ObservationHeader, started_ns, 48);
  EXPECT_EQ(sizeof(ObservationHeader), 56U);
}

TEST(ObservationLayout, Worker) {
  EXPECT_AT(WorkerRecord, generation, 0);
  EXPECT_AT(WorkerRecord, updated_ns, 8);
  EXPECT_AT(WorkerRecord, cpu_ns, 16);
  EXPECT_AT(WorkerRecord, wakeups, 24);
  EXPECT_AT(WorkerRecord, sent_bytes, 32);
  EXPECT_AT(WorkerRecord, received_bytes, 40);
  EXPECT_AT(WorkerRecord, local_bytes, 48);
  EXPECT_AT(WorkerRecord, refused, 56);
  EXPECT_AT(WorkerRecord, clients, 64);
  EXPECT_AT(WorkerRecord, left_out, 68);
  EXPECT_EQ(sizeof(WorkerRecord), 128U);
  EXPECT_AT(WorkerPage, clients, 128);
}

TEST(ObservationLayout, Client) {
  EXPECT_AT(ClientRecord, id, 0);
  EXPECT_AT(ClientRecord, process, 8);
  EXPECT_AT(ClientRecord, rank, 12);
  EXPECT_AT(ClientRecord, team_size, 16);
  EXPECT_AT(ClientRecord, in_flight, 20);
  EXPECT_AT(ClientRecord, posted, 24);
  EXPECT_AT(ClientRecord, done, 32);
  EXPECT_AT(ClientRecord, failed, 40);
  EXPECT_AT(ClientRecord, pulled_bytes, 48);
  EXPECT_AT(ClientRecord, served_bytes, 56);
  EXPECT_AT(ClientRecord, local_bytes, 64);
  EXPECT_AT(ClientRecord, progress_ns, 72);
  EXPECT_AT(ClientRecord, waited_ns, 80);
  EXPECT_AT(ClientRecord, oldest, 88);
  EXPECT_EQ(sizeof(ClientRecord), 256U);
}

TEST(ObservationLayout, Oldest) {
  EXPECT_AT(OldestRecord, age_ns, 0);
  EXPECT_AT(OldestRecord, bytes, 8);
  EXPECT_AT(OldestRecord, kind, 16);
  EXPECT_AT(OldestRecord, form, 20);
  EXPECT_AT(OldestRecord, waits, 24);
  EXPECT_AT(OldestRecord, members_count, 28);
  EXPECT_AT(OldestRecord, members, 32);
  EXPECT_AT(OldestRecord, team_size, 64);
  EXPECT_EQ(sizeof(OldestRecord), 72U);
}

}  // namespace
}  // namespace offpath::session
