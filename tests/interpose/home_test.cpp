// SPDX-License-Identifier: BSD-3-Clause
// Windows at home, between an origin and a target whose native messages are the test's: allocations fail, and all is
// answered in a later round all the same. What a flush has told, requests are told, too.
#include "mpi/native/handle_table.hpp"
#include "mpi/native/native.hpp"
#include "mpi/rma/at_home.hpp"
#include "mpi/rma/redoing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <new>
#include <utility>

namespace {
// Allocations that fail, of those that follow; what a native library allocates is not counted.
int good_left = 0, failures_left = 0;
bool counts = false;
}  // namespace

__attribute__((noinline)) void* operator new(size_t bytes) {
  const bool fails = counts && --good_left < 0 && --failures_left >= 0;
  void* const memory = fails ? nullptr : malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { free(memory); }

// What an outbox has no memory for stays the library's.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() { return "detect_leaks=0"; }

namespace offpath::mpi {

Native native;

namespace {

constexpr int kOrigin = 0, kTarget = 1;

template <typename Handle>
Handle handle_of(uintptr_t key) {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<Handle>(key);
  else
    return static_cast<Handle>(key);
}
// A member's window has a communicator of the member's own.
MPI_Comm comm_of(int rank) { return handle_of<MPI_Comm>(static_cast<uintptr_t>(rank) + 1); }
int rank_of(MPI_Comm comm) { return static_cast<int>(handle_key(comm)) - 1; }

// ---- native messages of two members, which arrive at once

class Uncounted {
 public:
  Uncounted() : before_(std::exchange(counts, false)) {}
  ~Uncounted() { counts = before_; }

 private:
  const bool before_;
};

std::map<std::pair<int, int>, std::deque<std::vector<uint8_t>>> boxes;  // by receiver, tag
int received_bytes = 0;

int send(const void* data, int count, MPI_Datatype, int to, int tag, MPI_Comm, MPI_Request* request) {
  const Uncounted uncounted;
  const auto* const bytes = static_cast<const uint8_t*>(data);
  boxes[{to, tag}].emplace_back(bytes, bytes + count);
  *request = handle_of<MPI_Request>(MPI_SUCCESS);
  return MPI_SUCCESS;
}

int receive(void* data, int count, int tag, MPI_Comm comm) {
  const Uncounted uncounted;
  auto& box = boxes[{rank_of(comm), tag}];
  const std::vector<uint8_t> bytes = std::move(box.front());
  box.pop_front();
  received_bytes = static_cast<int>(bytes.size());
  std::copy_n(bytes.begin(), std::min(bytes.size(), static_cast<size_t>(count)), static_cast<uint8_t*>(data));
  return bytes.size() > static_cast<size_t>(count) ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}

void use_these_messages() {
  native.Isend = &send;
  native.Iprobe = [](int, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
    const Uncounted uncounted;
    *flag = boxes[{rank_of(comm), tag}].empty() ? 0 : 1;
    status->MPI_SOURCE = 1 - rank_of(comm);
    return MPI_SUCCESS;
  };
  native.Recv = [](void* data, int count, MPI_Datatype, int, int tag, MPI_Comm comm, MPI_Status*) {
    return receive(data, count, tag, comm);
  };
  native.Irecv = [](void* data, int count, MPI_Datatype, int, int tag, MPI_Comm comm, MPI_Request* request) {
    *request = handle_of<MPI_Request>(static_cast<uintptr_t>(receive(data, count, tag, comm)));
    return MPI_SUCCESS;
  };
  native.Get_count = [](const MPI_Status*, MPI_Datatype, int* count) {
    *count = received_bytes;
    return MPI_SUCCESS;
  };
  native.Test = [](MPI_Request* request, int* flag, MPI_Status*) {
    *flag = 1;
    return static_cast<int>(handle_key(*request));
  };
}

// ---- a window of kCells numbers, all at the target

constexpr uint64_t kCells = 3000;  // more than fits into a short letter

class Window {
 public:
  Window() : part_(2, false, cells, sizeof(cells)), letters_{{comm_of(kOrigin), kOrigin}, {comm_of(kTarget), kTarget}} {
    use_these_messages();
    boxes.clear();
    for (const int member : {kOrigin, kTarget}) part_.note_held(member, AtHome::Held::nothing);
    part_.take_over({});
  }

  void keep(offpath_remote_kind_t kind, uint64_t cell, uint64_t* send, uint64_t* result, uint64_t count) {
    remote::Wanted wanted;
    wanted.kind = kind;
    wanted.offset = 8 * cell;
    wanted.bytes = 8 * count;
    if (remote::combines(kind)) wanted.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_U64};
    remote::Origin origin;
    origin.target = kTarget;
    if (send != nullptr) origin.send = block_of(send, count);
    if (result != nullptr) origin.result = block_of(result, count);
    remote::encode(wanted, {}, origin.body);
    client::Kept& kept = kept_.emplace_back();
    kept.sequence = posted_++;
    remote::encode(origin, kept.record);
  }
  void ask(Letter::Said said, uint64_t id) { letters_[kOrigin].send(kTarget, {.said = said, .id = id}); }
  // As both members' processes do, again and again.
  void round() {
    try {
      redoing.add(kept_);
      redoing.ask(letters_[kOrigin]);
      take(kTarget, [this](Letter& letter) { part_.take(letter); });
      part_.serve(letters_[kTarget]);
      take(kOrigin, [this](Letter& letter) {
        if (letter.head.said == Letter::Said::done) return redoing.take(letter);
        granted = letter.head;
      });
    } catch (const std::bad_alloc&) {
    }
  }

  uint64_t cells[kCells] = {};
  Redoing redoing;
  Letter::Head granted;

 private:
  static memory::Block block_of(uint64_t* numbers, uint64_t count) {
    return {.address = reinterpret_cast<uint64_t>(numbers), .bytes = 8 * count};
  }
  template <typename Take>
  void take(int rank, Take take_one) {
    Letters& letters = letters_[rank];
    letters.receive();
    while (Letter* letter = letters.next()) {
      take_one(*letter);
      letters.drop(*letter);
    }
  }

  AtHome part_;
  Letters letters_[2];
  std::vector<client::Kept> kept_;
  uint64_t posted_ = 0;
};

// So many allocations in a row.
void run_failing(int failures) {
  static uint64_t data[kCells], got[kCells];
  for (uint64_t i = 0; i < kCells; ++i) data[i] = i + 1;
  int failing = 0;
  for (bool failed = true; failed; ++failing) {
    Window window;
    window.ask(Letter::Said::lock_exclusive, 1);
    window.round();
    ASSERT_EQ(window.granted.id, 1U);
    constexpr uint64_t kAdds = 3;
    uint64_t one = 1, fetched[kAdds];
    memset(got, 0, sizeof(got));
    for (uint64_t& old : fetched) window.keep(OFFPATH_GET_ACCUMULATE, 0, &one, &old, 1);
    window.keep(OFFPATH_ACCUMULATE, 1, data, nullptr, kCells - 1);
    window.keep(OFFPATH_GET, 1, nullptr, got, kCells - 1);
    window.ask(Letter::Said::unlock, 2);
    good_left = failing, failures_left = failures, counts = true;
    for (int i = 0; i < 4 + failures; ++i) window.round();
    counts = false;
    failed = good_left < 0;
    ASSERT_EQ(window.redoing.first(), Redoing::kNone) << "allocation " << failing;
    ASSERT_EQ(window.granted.id, 2U);
    ASSERT_EQ(window.granted.status, OFFPATH_OK);
    // Those that are errors may be done.
    uint64_t good = 0, least = 0;
    for (uint64_t i = 0; i < kAdds; ++i) {
      const offpath_status_t status = window.redoing.outcome_of(i);
      ASSERT_TRUE(status == OFFPATH_OK || status == OFFPATH_ERR_NO_MEMORY);
      if (status != OFFPATH_OK) continue;
      ASSERT_GE(fetched[i], least);
      least = fetched[i] + 1;
      ++good;
    }
    ASSERT_GE(window.cells[0], good);
    ASSERT_LE(window.cells[0], kAdds) << "none is done twice";
    const bool is_summed = window.redoing.outcome_of(kAdds) == OFFPATH_OK;
    const bool is_got = window.redoing.outcome_of(kAdds + 1) == OFFPATH_OK;
    for (uint64_t i = 1; i < kCells; ++i) {
      ASSERT_TRUE(window.cells[i] == data[i - 1] || (!is_summed && window.cells[i] == 0)) << i;
      ASSERT_TRUE(!is_got || got[i - 1] == window.cells[i]) << i;
    }
  }
  EXPECT_GT(failing, 50);
}

TEST(AtHome, AnswersInALaterRoundWhatItHadNoMemoryFor) {
  for (const int failures : {1, 2, 5}) run_failing(failures);
}

TEST(Redoing, ARequestThatFailedSaysSoAfterAFlush) {
  Window window;
  uint64_t value = 1;
  window.keep(OFFPATH_PUT, kCells, &value, nullptr, 1);  // outside
  window.keep(OFFPATH_PUT, 0, &value, nullptr, 1);
  window.keep(OFFPATH_PUT, kCells + 1, &value, nullptr, 1);
  window.round();
  ASSERT_EQ(window.redoing.first(), Redoing::kNone);
  EXPECT_EQ(window.redoing.take_failure(2, true), OFFPATH_ERR_RANGE);
  EXPECT_EQ(window.redoing.take_failure(2, true), OFFPATH_OK) << "a flush tells it once";
  EXPECT_EQ(window.redoing.outcome_of(0), OFFPATH_ERR_RANGE) << "and its request, too";
  EXPECT_EQ(window.redoing.outcome_of(1), OFFPATH_OK);
  EXPECT_EQ(window.redoing.take_failure(3, false), OFFPATH_ERR_RANGE) << "one that came later";
  EXPECT_EQ(window.redoing.outcome_of(2), OFFPATH_OK) << "nobody has a request";
  EXPECT_EQ(window.redoing.take_failure(1, false), OFFPATH_OK);
}

}  // namespace
}  // namespace offpath::mpi
