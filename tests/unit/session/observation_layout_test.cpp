// SPDX-License-Identifier: BSD-3-Clause
// Golden offsets and sizes of what observers read. A change here needs a new kObservationVersion.
#include "session/observation.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <utility>

namespace offpath::session {
namespace {

using Golden = std::pair<const char*, size_t>;  // all of each: a new one is added here, too

#define EXPECT_AT(type, field, expected) EXPECT_EQ(offsetof(type, field), size_t{expected}) << #type "." #field

TEST(ObservationLayout, Constants) {
  EXPECT_EQ(kObservationMagic, 0x314f504646'4f00ULL);
  EXPECT_EQ(kObservationVersion, 2U);
  EXPECT_EQ(kObservedClients, 512U);
  EXPECT_EQ(base::kNamedMembers, 8U);
  EXPECT_EQ(kObservationHeaderBytes, 4096U);
  EXPECT_EQ(kPageBytes, 131264U);
}

TEST(ObservationLayout, Waits) {
  constexpr Golden kWaits[] = {{"nothing", 0}, {"earlier", 1}, {"not_posted", 2}, {"silent", 3},
                               {"sends", 4},   {"takes", 5},   {"service", 6},    {"answers", 7}};
  size_t at = 0;
#define OFFPATH_WAITS(name, number, text, about)                        \
  ASSERT_LT(at, std::size(kWaits));                                     \
  EXPECT_STREQ(#name, kWaits[at].first);                                \
  EXPECT_EQ(static_cast<size_t>(base::Waits::name), kWaits[at].second); \
  ++at;
#include <offpath/words/waits.def>
  EXPECT_EQ(at, std::size(kWaits));
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
  constexpr Golden kFields[] = {{"generation", 0},       {"updated_ns", 8},        {"cpu_ns", 16},
                                {"wakeups", 24},         {"sent_bytes", 32},       {"received_bytes", 40},
                                {"local_bytes", 48},     {"refused", 56},          {"clients", 64},
                                {"left_out", 68},        {"tasks_submitted", 72},  {"tasks_done", 80},
                                {"tasks_failed", 88},    {"tasks_run_ns", 96},     {"tasks_moved", 104},
                                {"tasks_returned", 112}, {"tasks_rerun", 120},     {"connections", 128},
                                {"segments_sent", 136},  {"segments_resent", 144}, {"segments_disordered", 152},
                                {"sending_ns", 160},     {"no_room_ns", 168},      {"round_trip_ns", 176},
                                {"window_bytes", 184}};
  size_t at = 0;
#define OFFPATH_OBSERVED_WORKER(bits, name, metric, about)     \
  ASSERT_LT(at, std::size(kFields));                           \
  EXPECT_STREQ(#name, kFields[at].first);                      \
  EXPECT_EQ(offsetof(WorkerRecord, name), kFields[at].second); \
  ++at;
#include <offpath/words/observed.def>
  EXPECT_EQ(at, std::size(kFields));
  EXPECT_EQ(sizeof(WorkerRecord), 192U);
  EXPECT_AT(WorkerPage, clients, 192);
}

TEST(ObservationLayout, Client) {
  constexpr Golden kFields[] = {
      {"id", 0},           {"process", 8},      {"rank", 12},     {"team_size", 16},    {"in_flight", 20},
      {"posted", 24},      {"done", 32},        {"failed", 40},   {"pulled_bytes", 48}, {"served_bytes", 56},
      {"local_bytes", 64}, {"progress_ns", 72}, {"waited_ns", 80}};
  size_t at = 0;
#define OFFPATH_OBSERVED_CLIENT(bits, name, metric, about)     \
  ASSERT_LT(at, std::size(kFields));                           \
  EXPECT_STREQ(#name, kFields[at].first);                      \
  EXPECT_EQ(offsetof(ClientRecord, name), kFields[at].second); \
  ++at;
#include <offpath/words/observed.def>
  EXPECT_EQ(at, std::size(kFields));
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
