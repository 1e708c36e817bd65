// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations move the right bytes: every kind, contiguous and through layouts, short and long, to members of
// this node, of another one, and to oneself.
#include "window.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace offpath::testing {
namespace {

constexpr uint64_t kElement = 8;
constexpr uint64_t kPattern = 3;        // elements: two, a gap of one, ...
constexpr uint64_t kSection = 3 << 20;  // bytes of a member's window that one origin works on
constexpr uint64_t kLongest = 140001;   // elements: more pieces than are under way at a time
const offpath_range_t kRanges[] = {{0, 8}, {8, 8}};
const offpath_layout_t kLayouts[] = {{16, 24, kRanges, 2}};

using Elements = std::vector<uint64_t>;

// Where element `i` lies.
uint64_t lies_at(uint64_t i, bool strided) { return strided ? i / 2 * kPattern + i % 2 : i; }

// A member's view of its section at one target: what must be there, and its own buffers.
struct Section {
  offpath_window_t* window;
  uint32_t target;
  uint64_t offset;
  Elements there;  // kept up to date here
  Elements send, result;
};

void run_one(Section& s, offpath_remote_kind_t kind, offpath_operator_t op, uint64_t count, bool strided_here,
             bool strided_there) {
  const uint64_t bytes = count * kElement, first = count % 5;
  offpath_remote_t remote = remote_of(kind, s.target, s.offset + first * kElement, bytes);
  const bool sends = kind != OFFPATH_GET, fetches = kind == OFFPATH_GET || kind == OFFPATH_GET_ACCUMULATE;
  if (kind != OFFPATH_PUT && kind != OFFPATH_GET) remote.op = op, remote.element = OFFPATH_ELEMENT_U64;
  remote.layouts = kLayouts;
  remote.layouts_count = 1;
  remote.target_layout = strided_there ? 1 : 0;
  const uint64_t used = first + lies_at(count, true) + 5;
  s.send.resize(used);
  s.result.resize(used);
  for (uint64_t i = 0; i < used; ++i) s.send[i] = i * 3 + count + static_cast<uint64_t>(kind) + s.offset;
  std::fill(s.result.begin(), s.result.end(), 0xEEEE);
  Elements expected = s.result;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t& there = s.there[first + lies_at(i, strided_there)];
    const uint64_t data = s.send[lies_at(i, strided_here)];
    if (fetches) expected[lies_at(i, strided_here)] = there;
    if (kind == OFFPATH_PUT || (sends && op == OFFPATH_OP_REPLACE)) there = data;
    if (sends && op == OFFPATH_OP_SUM) there += data;
  }
  if (sends) remote.send = block(s.send.data(), bytes, strided_here ? 1 : 0);
  if (fetches) remote.result = block(s.result.data(), bytes, strided_here ? 1 : 0);
  REQUIRE_STATUS(run(s.window, remote), OFFPATH_OK);
  REQUIRE(s.result == expected);
  Elements now(used);
  REQUIRE_STATUS(run(s.window, get_of(s.target, s.offset, now.data(), used * kElement)), OFFPATH_OK);
  REQUIRE(std::equal(now.begin(), now.end(), s.there.begin()));
}

void run_swap(Section& s) {
  uint64_t words[2] = {4711, s.there[9] + 1}, old = 0;
  offpath_remote_t swap = remote_of(OFFPATH_COMPARE_AND_SWAP, s.target, s.offset + 9 * kElement, kElement);
  swap.element = OFFPATH_ELEMENT_U64;
  swap.send = block(words, sizeof(words));
  swap.result = block(&old, sizeof(old));
  REQUIRE_STATUS(run(s.window, swap), OFFPATH_OK);
  REQUIRE(old == s.there[9]);
  words[1] = s.there[9];
  REQUIRE_STATUS(run(s.window, swap), OFFPATH_OK);
  REQUIRE(old == s.there[9]);
  s.there[9] = 4711;
}

void run_kinds(uint32_t processes, uint32_t nodes) {
  Job(processes, nodes).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    Elements memory(p.size * kSection / kElement, 7);
    offpath_window_t* window = open_window(team, 1, memory.data(), memory.size() * kElement);
    p.barrier();
    for (uint32_t k = 0; k < p.size; ++k) {
      Section s{window, (p.rank + k) % p.size, p.rank * kSection, {}, {}, {}};
      s.there.assign(kLongest * kPattern / 2 + 10, 7);
      for (const uint64_t count : {uint64_t{1}, uint64_t{33}, uint64_t{128}, uint64_t{129}, kLongest}) {
        for (const bool here : {false, true}) {
          for (const bool there : {false, true}) {
            if (count == kLongest && (k != p.size / 2 || here == there)) continue;  // it takes its time
            run_one(s, OFFPATH_PUT, OFFPATH_OP_NONE, count, here, there);
            run_one(s, OFFPATH_GET, OFFPATH_OP_NONE, count, here, there);
            run_one(s, OFFPATH_ACCUMULATE, OFFPATH_OP_SUM, count, here, there);
            run_one(s, OFFPATH_GET_ACCUMULATE, OFFPATH_OP_SUM, count, here, there);
            run_one(s, OFFPATH_GET_ACCUMULATE, OFFPATH_OP_REPLACE, count, here, there);
            run_one(s, OFFPATH_GET_ACCUMULATE, OFFPATH_OP_NO_OP, count, here, there);
          }
        }
      }
      run_swap(s);
    }
    p.barrier();
    offpath_window_destroy(window);
  });
}

TEST(Remote, ToOneself) { run_kinds(1, 1); }
TEST(Remote, OnOneNode) { run_kinds(3, 1); }
TEST(Remote, OnTwoNodes) { run_kinds(4, 2); }

TEST(Remote, WithSeveralWorkers) {
  setenv("OFFPATH_SERVICE_WORKERS", "3", 1);
  run_kinds(4, 1);
  run_kinds(4, 2);
  unsetenv("OFFPATH_SERVICE_WORKERS");
}

// The target sees the signal only when all data is there, and is woken by it: it asks for nothing itself.
void run_signals(uint32_t nodes) {
  Job(2, nodes).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    void* memory = nullptr;
    REQUIRE_STATUS(offpath_memory_allocate(session, 4 << 20, &memory), OFFPATH_OK);
    offpath_window_t* window = open_window(team, 1, memory, 4 << 20);
    p.barrier();
    for (const uint64_t bytes : {uint64_t{1}, uint64_t{4096}, uint64_t{100001}, uint64_t{3 << 20}}) {
      const uint64_t word = 0x1234567890ABCDEF ^ bytes, at = 64 - bytes % 8;
      std::vector<uint8_t> data(bytes);
      for (uint64_t i = 0; i < bytes; ++i) data[i] = static_cast<uint8_t>(i * 7 + bytes);
      if (p.rank == 0) {
        offpath_remote_t put = remote_of(OFFPATH_PUT_SIGNAL, 1, at, bytes + sizeof(word));
        put.send = block(data.data(), bytes);
        put.signal = &word;
        REQUIRE_STATUS(run(window, put), OFFPATH_OK);
      } else {
        auto* const here = static_cast<uint8_t*>(memory) + at;
        auto* const signal = reinterpret_cast<uint64_t*>(here + bytes);
        for (;;) {
          const uint32_t seen = offpath_session_events(session);
          if (__atomic_load_n(signal, __ATOMIC_ACQUIRE) == word) break;
          REQUIRE(offpath_session_sleep(session, seen, kLongNs) == OFFPATH_OK ||
                  seen != offpath_session_events(session));
        }
        REQUIRE(std::equal(data.begin(), data.end(), here));
      }
      p.barrier();
    }
    offpath_remote_t beyond = remote_of(OFFPATH_PUT_SIGNAL, 1 - p.rank, (4 << 20) - 2048, 2048 + 8);
    const std::vector<uint8_t> data(2048);
    beyond.send = block(data.data(), data.size());
    beyond.signal = data.data();
    REQUIRE_STATUS(run(window, beyond), OFFPATH_ERR_RANGE);
    p.barrier();
    offpath_window_destroy(window);
  });
}

TEST(Remote, SignalsComeAfterTheirData) {
  run_signals(1);
  run_signals(2);
}

// Ranges of any number here, of up to the limit there; what is sent may overlap.
TEST(Remote, LayoutsOfManyRanges) {
  Job(2, 2).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    std::vector<uint8_t> memory(65536, 1);
    offpath_window_t* window = open_window(team, 1, memory.data(), memory.size());
    p.barrier();
    std::vector<offpath_range_t> here(5000, {3, 1}), there;
    for (int64_t i = 0; i < OFFPATH_REMOTE_RANGES_MAX; ++i) there.push_back({(i * 37 % 128) * 10, 5});
    const offpath_layout_t layouts[] = {{here.size(), 0, here.data(), static_cast<uint32_t>(here.size())},
                                        {there.size() * 5, 2000, there.data(), static_cast<uint32_t>(there.size())}};
    const uint8_t send[] = {0, 0, 0, 9};
    offpath_remote_t remote = put_of(1 - p.rank, 0, send, 10000);
    remote.layouts = layouts, remote.layouts_count = 2, remote.target_layout = 2, remote.send.layout = 1;
    REQUIRE_STATUS(run(window, remote), OFFPATH_OK);
    p.barrier();
    std::vector<uint8_t> expected(memory.size(), 1);
    for (size_t at = 0; at < 10000; ++at) {
      expected[at / 640 * 2000 + static_cast<size_t>(there[at % 640 / 5].offset_bytes) + at % 5] = 9;
    }
    REQUIRE(memory == expected);
    p.barrier();
    offpath_window_destroy(window);
  });
}

TEST(Remote, SaysWhatItWaitsFor) {
  Job(2, 2).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    uint64_t memory = 0;
    offpath_window_t* window = open_window(team, 1, &memory, sizeof(memory));
    p.barrier();
    const offpath_remote_t lock = remote_of(OFFPATH_LOCK_EXCLUSIVE, 1, 0, 0);
    if (p.rank == 0) REQUIRE_STATUS(run(window, lock), OFFPATH_OK);
    p.barrier();
    if (p.rank == 1) {
      offpath_op_t* op = nullptr;
      REQUIRE_STATUS(offpath_remote(window, &lock, &op), OFFPATH_OK);
      char text[200] = "";
      REQUIRE(eventually([&] {
        offpath_op_describe(op, text, sizeof(text));
        return strcmp(text, "exclusive lock #0: waits for rank 1") == 0;
      }));
      p.barrier();
      p.wait_ok(op);
      offpath_op_describe(op, text, sizeof(text));
      REQUIRE(strcmp(text, "exclusive lock #0: done") == 0);
      offpath_op_free(op);
    } else {
      p.barrier();
    }
    post(window, OFFPATH_UNLOCK, 1);
    flush(window);
    p.barrier();
    offpath_window_destroy(window);
  });
}

}  // namespace
}  // namespace offpath::testing
