// SPDX-License-Identifier: BSD-3-Clause
// Golden offsets and sizes of everything client and service share. A change here needs a new kVersion (kLinkVersion).
#include "session/layout.hpp"
#include "session/link.hpp"

#include <gtest/gtest.h>

#include <offpath/offpath.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <set>
#include <string>
#include <utility>

namespace offpath::session {
namespace {

#define EXPECT_AT(type, field, expected) EXPECT_EQ(offsetof(type, field), size_t{expected}) << #type "." #field

TEST(Layout, Constants) {
  EXPECT_EQ(kVersion, 20U);
  EXPECT_EQ(kSlotCount, 1024U);
  EXPECT_EQ(kSegmentBytes, 67108864U);
  EXPECT_EQ(kHeaderBytes, 4096U);
  EXPECT_EQ(kRingOffset, 4096U);
  EXPECT_EQ(kSlotsOffset, 8192U);
  EXPECT_EQ(kAliasesOffset, 139264U);
  EXPECT_EQ(kArenaOffset, 151552U);
  EXPECT_EQ(kMagic, 0x3147504646'4f00ULL);
  EXPECT_EQ(kOwnBlockByClient, 1U);
  EXPECT_EQ(kTimed, 2U);
}

TEST(Layout, Enumerations) {
  // All of them: a new one is added here, too.
  constexpr std::pair<const char*, uint32_t> kKinds[] = {
      {"none", 0},         {"team_create", 1},   {"team_destroy", 2},  {"collective", 3}, {"window_open", 4},
      {"window_close", 5}, {"window_attach", 6}, {"window_detach", 7}, {"remote", 8},     {"program", 9},
      {"function", 10},    {"task", 11},         {"task_cancel", 12},  {"gate", 13},      {"window_give_up", 14},
      {"file_open", 15},   {"file_close", 16},   {"file_write", 17},   {"file_read", 18}, {"team_give_up", 19}};
  size_t at = 0;
#define OFFPATH_OP_KIND(name, number, does, forms, about)            \
  ASSERT_LT(at, std::size(kKinds));                                  \
  EXPECT_STREQ(#name, kKinds[at].first);                             \
  EXPECT_EQ(static_cast<uint32_t>(OpKind::name), kKinds[at].second); \
  ++at;
#include <offpath/words/op_kinds.def>
  EXPECT_EQ(at, std::size(kKinds));
  EXPECT_EQ(static_cast<int>(SlotState::free), 0);
  EXPECT_EQ(static_cast<int>(SlotState::posted), 1);
  EXPECT_EQ(static_cast<int>(SlotState::active), 2);
  EXPECT_EQ(static_cast<int>(SlotState::done), 3);
  EXPECT_EQ(static_cast<int>(SlotState::arrived), 4);
}

TEST(Layout, Header) {
  EXPECT_AT(SegmentHeader, magic, 0);
  EXPECT_AT(SegmentHeader, version, 8);
  EXPECT_AT(SegmentHeader, slot_count, 12);
  EXPECT_AT(SegmentHeader, segment_bytes, 16);
  EXPECT_AT(SegmentHeader, ring_offset, 24);
  EXPECT_AT(SegmentHeader, slots_offset, 32);
  EXPECT_AT(SegmentHeader, arena_offset, 40);
  EXPECT_AT(SegmentHeader, probe_address, 48);
  EXPECT_AT(SegmentHeader, probe_value, 56);
  EXPECT_AT(SegmentHeader, submitted, 64);
  EXPECT_AT(SegmentHeader, asked, 68);
  EXPECT_AT(SegmentHeader, consumed, 128);
  EXPECT_AT(SegmentHeader, worker_sleeps, 192);
  EXPECT_AT(SegmentHeader, events, 256);
  EXPECT_AT(SegmentHeader, waiters, 260);
  EXPECT_AT(SegmentHeader, answered, 264);
  EXPECT_AT(SegmentHeader, counters, 320);
  EXPECT_AT(SegmentHeader, shared_address, 360);
  EXPECT_AT(SegmentHeader, shared_bytes, 368);
  EXPECT_AT(SegmentHeader, waited_ns, 384);
  EXPECT_AT(SegmentHeader, waiting_since_ns, 392);
  EXPECT_AT(SegmentHeader, polls_until_ns, 400);
  EXPECT_AT(SegmentHeader, aliases_version, 448);
  EXPECT_AT(SegmentHeader, aliases_count, 452);
  EXPECT_AT(SegmentHeader, leaves, 456);
  EXPECT_AT(SegmentHeader, in_use, 460);
  EXPECT_AT(SegmentHeader, in_place_bytes, 512);
  EXPECT_AT(SegmentHeader, copied_bytes, 520);
  EXPECT_AT(SegmentHeader, coded_bytes, 528);
  EXPECT_AT(SegmentHeader, wire_bytes, 536);
  EXPECT_AT(SegmentHeader, lossy_bytes, 544);
  EXPECT_AT(SegmentHeader, largest_error, 552);
  EXPECT_AT(SegmentHeader, sampled_bytes, 560);
  EXPECT_AT(SegmentHeader, sampled_left_bytes, 568);
  EXPECT_AT(SegmentHeader, file_bytes, 576);
  EXPECT_AT(SegmentHeader, elsewhere_cpu_ns, 584);
  EXPECT_AT(SegmentHeader, energy_uj, 592);
  EXPECT_AT(SegmentHeader, saved_ns, 600);
  EXPECT_EQ(sizeof(SegmentHeader), 640U);
  EXPECT_AT(Counters, completed, 0);
  EXPECT_AT(Counters, failed, 8);
  EXPECT_AT(Counters, pulled_bytes, 16);
  EXPECT_AT(Counters, served_bytes, 24);
  EXPECT_AT(Counters, local_bytes, 32);
  EXPECT_EQ(sizeof(Counters), 40U);
}

TEST(Layout, RecordOfAProgram) {
  EXPECT_AT(ProgramRecord, rows, 0);
  EXPECT_AT(ProgramRecord, scalars, 8);
  EXPECT_AT(ProgramRecord, scalars_count, 16);
  EXPECT_AT(ProgramRecord, reduce_first, 20);
  EXPECT_AT(ProgramRecord, reduce_count, 24);
  EXPECT_AT(ProgramRecord, vectors_count, 28);
  EXPECT_AT(ProgramRecord, matrices_count, 32);
  EXPECT_AT(ProgramRecord, before_count, 36);
  EXPECT_AT(ProgramRecord, after_count, 40);
  EXPECT_AT(ProgramRecord, statements_count, 44);
  EXPECT_AT(ProgramRecord, terms_count, 48);
  EXPECT_AT(ProgramRecord, crossing, 52);
  EXPECT_EQ(sizeof(ProgramRecord), 56U);
  EXPECT_AT(CrossingRecord, in_count, 0);
  EXPECT_AT(CrossingRecord, out_count, 4);
  EXPECT_EQ(sizeof(CrossingRecord), 8U);
  EXPECT_AT(MatrixRecord, first_row, 0);
  EXPECT_AT(MatrixRecord, rows, 8);
  EXPECT_AT(MatrixRecord, offsets, 16);
  EXPECT_AT(MatrixRecord, columns, 24);
  EXPECT_AT(MatrixRecord, values, 32);
  EXPECT_AT(MatrixRecord, entries, 40);
  EXPECT_AT(MatrixRecord, columns_count, 48);
  EXPECT_AT(MatrixRecord, source, 56);
  EXPECT_AT(MatrixRecord, target, 60);
  EXPECT_EQ(sizeof(ScalarStepRecord), 16U);
  EXPECT_EQ(sizeof(StatementRecord), 16U);
  EXPECT_EQ(sizeof(TermRecord), 8U);
}

TEST(Layout, SlotOfAnOperation) {
  EXPECT_AT(Slot, state, 0);
  EXPECT_AT(Slot, kind, 4);
  EXPECT_AT(Slot, status, 8);
  EXPECT_AT(Slot, flags, 12);
  EXPECT_AT(Slot, team, 16);
  EXPECT_AT(Slot, sequence, 24);
  EXPECT_AT(Slot, record, 32);
  EXPECT_AT(Slot, open, 40);
  EXPECT_AT(Slot, steps_left, 48);
  EXPECT_AT(Slot, exports_left, 52);
  EXPECT_AT(Slot, window, 56);
  EXPECT_AT(Slot, address, 64);
  EXPECT_AT(Slot, bytes, 72);
  EXPECT_AT(Slot, started_ns, 80);
  EXPECT_AT(Slot, first_byte_ns, 88);
  EXPECT_AT(Slot, done_ns, 96);
  EXPECT_AT(Slot, last_peer, 104);
  EXPECT_AT(Slot, record_bytes, 108);
  EXPECT_AT(Slot, reserved, 112);
  EXPECT_EQ(sizeof(Slot), 128U);
  EXPECT_EQ(alignof(Slot), 64U);
}

TEST(Layout, RecordOfATeam) {
  EXPECT_AT(TeamRecord, id, 0);
  EXPECT_AT(TeamRecord, rank, 16);
  EXPECT_AT(TeamRecord, size, 20);
  EXPECT_AT(TeamRecord, address_stride, 24);
  EXPECT_AT(TeamRecord, broken, 28);
  EXPECT_AT(TeamRecord, started, 32);
  EXPECT_AT(TeamRecord, addresses, 40);
  EXPECT_AT(TeamRecord, address_of, 48);
  EXPECT_AT(TeamRecord, lost, 56);
  EXPECT_AT(TeamRecord, addresses_count, 64);
  EXPECT_AT(TeamRecord, compress, 72);
  EXPECT_EQ(sizeof(TeamRecord), 136U);
}

TEST(Layout, RecordOfAWindow) {
  EXPECT_EQ(kDynamicWindow, 1U);
  EXPECT_AT(WindowRecord, id, 0);
  EXPECT_AT(WindowRecord, base, 8);
  EXPECT_AT(WindowRecord, bytes, 16);
  EXPECT_AT(WindowRecord, flags, 24);
  EXPECT_AT(WindowRecord, journal, 32);
  EXPECT_AT(WindowRecord, journal_bytes, 40);
  EXPECT_AT(WindowRecord, issued, 48);
  EXPECT_AT(WindowRecord, completed, 64);
  EXPECT_AT(WindowRecord, failure, 72);
  EXPECT_EQ(sizeof(WindowRecord), 128U);
}

TEST(Layout, AttachMessages) {
  EXPECT_EQ(kLinkVersion, 10U);
  EXPECT_EQ(static_cast<int>(RequestKind::attach), 0);
  EXPECT_EQ(static_cast<int>(RequestKind::observe), 1);
  EXPECT_EQ(static_cast<int>(RequestKind::agent), 2);
  EXPECT_EQ(static_cast<int>(RequestKind::replace), 3);
  EXPECT_AT(AttachRequest, version, 0);
  EXPECT_AT(AttachRequest, kind, 4);
  EXPECT_AT(AttachRequest, segment_bytes, 8);
  EXPECT_AT(AttachRequest, token, 16);
  EXPECT_AT(AttachRequest, flags, 48);
  EXPECT_EQ(sizeof(AttachRequest), 56U);
  EXPECT_AT(AttachReply, version, 0);
  EXPECT_AT(AttachReply, status, 4);
  EXPECT_AT(AttachReply, flags, 8);
  EXPECT_AT(AttachReply, workers, 12);
  EXPECT_AT(AttachReply, helpers, 16);
  EXPECT_AT(AttachReply, clients, 20);
  EXPECT_AT(AttachReply, process, 24);
  EXPECT_AT(AttachReply, address_bytes, 28);
  EXPECT_AT(AttachReply, address, 32);
  EXPECT_AT(AttachReply, text, 1056);
  EXPECT_AT(AttachReply, thread, 1308);
  EXPECT_EQ(sizeof(AttachReply), 1312U);
}

TEST(Layout, StructsOfTheCApi) {
  EXPECT_EQ(sizeof(offpath_error_t), 256U);
  EXPECT_EQ(sizeof(offpath_attach_params_t), 56U);
  EXPECT_AT(offpath_attach_params_t, job_token, 8);
  EXPECT_AT(offpath_attach_params_t, service_cores, 40);
  EXPECT_AT(offpath_attach_params_t, node_sessions_count, 48);
  EXPECT_EQ(sizeof(offpath_team_params_t), 48U);
  EXPECT_AT(offpath_team_params_t, id, 16);
  EXPECT_AT(offpath_team_params_t, addresses, 32);
  EXPECT_EQ(sizeof(offpath_directory_t), 32U);
  EXPECT_AT(offpath_directory_t, addresses, 16);
  EXPECT_AT(offpath_directory_t, number_of, 24);
  EXPECT_EQ(sizeof(offpath_range_t), 16U);
  EXPECT_EQ(sizeof(offpath_layout_t), 32U);
  EXPECT_AT(offpath_layout_t, ranges, 16);
  EXPECT_EQ(sizeof(offpath_block_t), 32U);
  EXPECT_AT(offpath_block_t, address, 8);
  EXPECT_AT(offpath_block_t, layout, 24);
  EXPECT_EQ(sizeof(offpath_collective_t), 72U);
  EXPECT_AT(offpath_collective_t, root, 12);
  EXPECT_AT(offpath_collective_t, element, 20);
  EXPECT_AT(offpath_collective_t, send, 24);
  EXPECT_AT(offpath_collective_t, send_count, 40);
  EXPECT_AT(offpath_collective_t, counts_bytes, 48);
  EXPECT_AT(offpath_collective_t, layouts_count, 64);
  EXPECT_EQ(sizeof(offpath_window_params_t), 32U);
  EXPECT_AT(offpath_window_params_t, base, 16);
  EXPECT_EQ(sizeof(offpath_remote_t), 128U);
  EXPECT_AT(offpath_remote_t, target_layout, 20);
  EXPECT_AT(offpath_remote_t, target_offset, 24);
  EXPECT_AT(offpath_remote_t, send, 40);
  EXPECT_AT(offpath_remote_t, layouts_count, 112);
  EXPECT_AT(offpath_remote_t, flags, 116);
  EXPECT_EQ(sizeof(offpath_op_times_t), 40U);
  EXPECT_AT(offpath_op_times_t, last_peer, 4);
  EXPECT_AT(offpath_op_times_t, posted_ns, 8);
  EXPECT_AT(offpath_op_times_t, done_ns, 32);
  EXPECT_EQ(sizeof(offpath_session_counters_t), 240U);
  EXPECT_AT(offpath_session_counters_t, posted_count, 8);
  EXPECT_AT(offpath_session_counters_t, service_cpu_ns, 64);
  EXPECT_AT(offpath_session_counters_t, service_workers_count, 76);
  EXPECT_AT(offpath_session_counters_t, service_helpers_count, 80);
}

TEST(Link, SocketNamesDifferAndHideTheToken) {
  uint8_t token[OFFPATH_TOKEN_BYTES] = {};
  std::set<std::string> names;
  for (int bit = 0; bit < 256; ++bit) {
    memset(token, 0, sizeof(token));
    token[bit / 8] = static_cast<uint8_t>(1 << (bit % 8));
    names.insert(socket_path("/x", token));
  }
  EXPECT_EQ(names.size(), 256U);
  EXPECT_EQ(names.begin()->size(), strlen("/x/0123456789abcdef-01234567.sock"));
}

// It would stay as one that nobody can enter, and later jobs would have no service.
TEST(Link, ItsFolderCanBeUsedWhateverTheUmask) {
  char parent[] = "/tmp/offpath-test-XXXXXX";
  ASSERT_NE(mkdtemp(parent), nullptr);
  const std::string own = std::string(parent) + "/own";
  setenv("OFFPATH_RUNTIME_DIR", own.c_str(), 1);
  const mode_t before = umask(0777);
  EXPECT_TRUE(runtime_folder().ok());
  umask(before);
  struct stat info {};
  ASSERT_EQ(stat(own.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  rmdir(own.c_str());
  rmdir(parent);
  unsetenv("OFFPATH_RUNTIME_DIR");
}

// A launcher hands on the environment of the node it was typed on, whose session folder is nowhere else.
TEST(Link, WithoutTheSessionsFolderThereIsOneInTmp) {
  const std::string in_tmp = "/tmp/offpath-" + std::to_string(getuid());
  unsetenv("OFFPATH_RUNTIME_DIR");
  for (const char* gone : {"/nonexistent/session", "/proc/self/fd"}) {
    setenv("XDG_RUNTIME_DIR", gone, 1);
    const auto folder = runtime_folder();
    ASSERT_TRUE(folder.ok()) << folder.status().text();
    EXPECT_EQ(folder.value(), in_tmp);
  }
  char session[] = "/tmp/offpath-test-XXXXXX";
  ASSERT_NE(mkdtemp(session), nullptr);
  setenv("XDG_RUNTIME_DIR", session, 1);
  const std::string own = std::string(session) + "/offpath";
  EXPECT_EQ(runtime_folder().value(), own);
  ASSERT_EQ(chmod(session, 01777), 0);  // as /tmp: what is ours there stays there
  EXPECT_EQ(runtime_folder().value(), own);
  ASSERT_EQ(chmod(session, 0777), 0);  // anybody could put another one in its place
  EXPECT_EQ(runtime_folder().value(), in_tmp);
  ASSERT_EQ(chmod(session, 0700), 0);
  constexpr uid_t kAnother = 65534;  // whose shell su or sudo -E was typed in
  if (chown(session, kAnother, kAnother) == 0) EXPECT_EQ(runtime_folder().value(), in_tmp);
  rmdir(own.c_str());
  rmdir(session);
  setenv("OFFPATH_RUNTIME_DIR", "/nonexistent/folder", 1);  // what was asked for is not replaced
  EXPECT_FALSE(runtime_folder().ok());
  unsetenv("OFFPATH_RUNTIME_DIR");
  unsetenv("XDG_RUNTIME_DIR");
}

TEST(Link, TooLongPathsAreRefused) {
  EXPECT_EQ(listen_at("/tmp/" + std::string(200, 'x')).status().code(), OFFPATH_ERR_NO_SERVICE);
  EXPECT_EQ(connect_to("/tmp/" + std::string(200, 'x')).status().code(), OFFPATH_ERR_NO_SERVICE);
  EXPECT_EQ(connect_to("/nonexistent/socket").status().code(), OFFPATH_ERR_NO_SERVICE);
}

}  // namespace
}  // namespace offpath::session
