// SPDX-License-Identifier: BSD-3-Clause
// A service that dies at any write to the window, and the process that takes its window over from the journal: what is atomic is
// done once, whatever was answered (docs/design/0044-recovery.md, Windows). OFFPATH_TEST_SEED repeats one program.
#include "onesided_target.hpp"
#include "ops/onesided/home.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <random>

// A service that is killed in the middle of an access ends it nowhere.
extern "C" [[gnu::visibility("default")]] const char* __lsan_default_suppressions() {
  return "leak:offpath::memory::Port::scatter";
}

namespace offpath::ops::onesided {
namespace {

struct Killed {};

// Dies at one write, of which a part is done.
class Mortal : public memory::Port {
 public:
  memory::Outcome read(void* to, uint64_t address, size_t bytes, memory::Ticket) const override {
    memcpy(to, reinterpret_cast<const void*>(address), bytes);
    return {};
  }
  memory::Outcome write(uint64_t address, const void* from, size_t bytes, memory::Ticket) const override {
    const bool dies = left == 0;
    const size_t part = dies ? std::min<size_t>(last_part, bytes) : bytes;
    memcpy(reinterpret_cast<void*>(address), from, part);
    if (dies) throw Killed();
    --left;
    return {};
  }
  mutable uint64_t left = UINT64_MAX;
  size_t last_part = 0;
};

constexpr uint32_t kMembers = 3;
constexpr uint64_t kCounters = 4096;  // of 8 bytes
constexpr uint64_t kKills = 400;

class Death {
 public:
  explicit Death(uint64_t seed) : random_(seed), journal_((remote::journal_bytes(kMembers) + 7) / 8) {
    EXPECT_TRUE(target_.open(kClient, kTeam, kWindow, base(), 8 * kCounters, false, journal()).ok());
    port_->left = random_() % 60;
    port_->last_part = random_() % 3 == 0 ? random_() % 9 : random_() % (20 << 10);
  }

  void run() {
    try {
      for (int i = 0; i < 40; ++i) step();
    } catch (const Killed&) {
    }
    Home home(kMembers, false, base(), memory::make_direct());
    ASSERT_TRUE(home.attach(base(), 8 * kCounters));
    home.take_over({bytes(), remote::journal_bytes(kMembers)});
    for (uint32_t from = 0; from < kMembers; ++from) {
      for (const Posted& posted : posted_[from]) {
        if (!posted.answered) again(home, from, posted);
      }
    }
    uint64_t sum = 0;
    for (const uint64_t counter : window_) sum += counter;
    EXPECT_EQ(sum, expected_);
    std::sort(fetched_.begin(), fetched_.end());
    std::vector<uint64_t> all(fetched_.size());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(fetched_, all) << "what counters gave out";
  }

 private:
  struct Posted {
    Body wanted;
    std::vector<uint8_t> data;
    bool answered = false;
  };
  uint64_t base() const { return reinterpret_cast<uint64_t>(window_.data()); }
  uint8_t* bytes() { return reinterpret_cast<uint8_t*>(journal_.data()); }
  std::shared_ptr<remote::Journal> journal() {
    return written_ = std::make_shared<remote::Journal>(bytes(), kMembers, nullptr);
  }

  // Counter 0 gives out numbers; the others are added to.
  void step() {
    const auto from = static_cast<uint32_t>(random_() % kMembers);
    Posted posted;
    Body& wanted = posted.wanted;
    wanted.window = kWindow;
    wanted.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_U64};
    wanted.number = numbers_[from]++;
    const bool fetches = random_() % 2 == 0, is_long = !fetches && random_() % 4 == 0;
    wanted.kind = fetches ? OFFPATH_GET_ACCUMULATE : OFFPATH_ACCUMULATE;
    const uint64_t count = fetches ? 1 : is_long ? 200 + random_() % 3000 : 1 + random_() % 20;
    wanted.bytes = 8 * count;
    wanted.offset = fetches ? 0 : 8 * (1 + random_() % (kCounters - count - 1));
    posted.data.resize(wanted.bytes);
    for (uint64_t i = 0; i < count; ++i) posted.data[8 * i] = 1;
    if (!fetches) expected_ += count;
    if (fetches) ++expected_;
    if (!is_long) wanted.data = posted.data;
    posted_[from].push_back(posted);
    Posted& kept = posted_[from].back();
    is_long ? reduce(from, kept) : ask(from, kept);
  }

  void ask(uint32_t from, Posted& posted) {
    const Answer answer = target_.on_request(kClient, kTeam, from, ++last_, port_, encode(posted.wanted));
    ASSERT_EQ(answer.kind, Answer::Kind::reply);
    ASSERT_TRUE(answer.status.ok()) << answer.status.text();
    if (random_() % 4 == 0) return;  // it gets lost
    posted.answered = true;
    if (!answer.payload.empty()) note_fetched(answer.payload);
  }

  // As the graph of a long one does it, in pieces.
  void reduce(uint32_t from, Posted& posted) {
    written_->begin(from, posted.wanted.number);
    const auto through = remote::make_journaled(port_, written_);
    for (uint64_t at = 0; at < posted.wanted.bytes;) {
      const uint64_t part = std::min<uint64_t>(8 * (1 + random_() % 4000), posted.wanted.bytes - at);
      const auto* there = reinterpret_cast<const uint64_t*>(base() + posted.wanted.offset + at);
      std::vector<uint64_t> after(there, there + part / 8);
      for (uint64_t& value : after) ++value;
      const uint64_t address = reinterpret_cast<uint64_t>(there);
      const bool scatters = random_() % 2 == 0;
      uint8_t* const draft = random_() % 2 == 0 ? through->draft(address, part) : nullptr;
      if (draft != nullptr) memcpy(draft, after.data(), part);
      const void* const made = draft != nullptr ? draft : reinterpret_cast<const uint8_t*>(after.data());
      const memory::Outcome written =
          scatters ? through->scatter(ranges_of(address, part), after.data()) : through->write(address, made, part);
      ASSERT_TRUE(written.ok());
      at += part;
    }
    written_->end();
    posted.answered = random_() % 4 != 0;
  }

  std::vector<memory::Range> ranges_of(uint64_t address, uint64_t bytes) {
    const uint64_t most = random_() % 8 == 0 ? 4000 : 9;
    std::vector<memory::Range> ranges;
    for (uint64_t at = 0; at < bytes; at += ranges.back().bytes)
      ranges.push_back({static_cast<int64_t>(address + at), std::min(8 * (1 + random_() % most), bytes - at)});
    return ranges;
  }

  void again(Home& home, uint32_t from, const Posted& posted) {
    Body body = posted.wanted;
    body.data.clear();
    const Home::Outcome outcome = home.perform(from, encode(body), posted.data, true);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.text();
    if (fetches(posted.wanted.kind)) note_fetched(outcome.fetched);
  }

  void note_fetched(const std::vector<uint8_t>& value) {
    ASSERT_EQ(value.size(), 8U);
    uint64_t number = 0;
    memcpy(&number, value.data(), 8);
    fetched_.push_back(number);
  }

  std::mt19937_64 random_;
  std::vector<uint64_t> journal_;
  std::vector<uint64_t> window_ = std::vector<uint64_t>(kCounters);
  std::shared_ptr<Mortal> port_ = std::make_shared<Mortal>();
  std::shared_ptr<remote::Journal> written_;
  Target target_{[](RequestId, Answer) {}};
  RequestId last_ = 0;
  uint64_t numbers_[kMembers] = {};
  std::vector<Posted> posted_[kMembers];
  std::vector<uint64_t> fetched_;
  uint64_t expected_ = 0;
};

TEST(OnesidedHome, AtomicsAreDoneOnceWheneverTheServiceDies) {
  const char* seed_text = std::getenv("OFFPATH_TEST_SEED");
  const uint64_t first = seed_text == nullptr ? std::random_device{}() : std::strtoull(seed_text, nullptr, 0);
  for (uint64_t seed = first; seed < first + (seed_text == nullptr ? 3000 : 1); ++seed) {
    Death(seed).run();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "OFFPATH_TEST_SEED=" << seed;
  }
}

// As a process that is killed at any instruction: between two stores of the journal, too.
class Kill {
 public:
  static constexpr uint32_t kSteps = 60, kWide = 64;
  struct Shared {
    uint64_t
        window[1 + 1 + kSteps + 4 * kWide];  // what gives numbers, what is swapped, what is claimed, what is added to
    std::atomic<uint32_t> ended;
    uint64_t fetched[kSteps];
    uint64_t journal[(64 << 10) / 8];
  };
  explicit Kill(uint64_t seed)
      : random_(seed),
        shared_(static_cast<Shared*>(
            mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    for (uint32_t i = 0; i < kSteps; ++i) steps_.push_back(make(i));
  }
  ~Kill() { munmap(shared_, sizeof(Shared)); }
  Kill(const Kill&) = delete;
  Kill& operator=(const Kill&) = delete;

  void run() {
    const auto ns = static_cast<long>(random_() % 150'000 + 1000);
    const pid_t child = fork();
    if (child == 0) serve(ns);
    int status = 0;
    waitpid(child, &status, 0);
    const uint32_t ended = shared_->ended;
    ASSERT_TRUE(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    Home home(kMembers, false, base(), memory::make_direct());
    ASSERT_TRUE(home.attach(base(), sizeof(shared_->window)));
    home.take_over({bytes(), remote::journal_bytes(kMembers)});
    for (uint32_t i = 0; i < kSteps; ++i) {
      if (i < ended && i % 3 != 0) continue;  // answers of some get lost
      const Step& step = steps_[i];
      Body body = step.wanted;
      body.data.clear();
      const Home::Outcome outcome = home.perform(step.from, encode(body), step.wanted.data, true);
      ASSERT_TRUE(outcome.status.ok()) << outcome.status.text();
      if (fetches(step.wanted.kind)) {
        uint64_t value = 0;
        ASSERT_GE(outcome.fetched.size(), 8U);
        memcpy(&value, outcome.fetched.data(), 8);
        shared_->fetched[i] = value;
      }
    }
    check();
  }

 private:
  struct Step {
    Body wanted;
    uint32_t from = 0;
    uint32_t how = 0;
  };
  uint64_t base() const { return reinterpret_cast<uint64_t>(shared_->window); }
  uint8_t* bytes() { return reinterpret_cast<uint8_t*>(shared_->journal); }

  Step make(uint32_t i) {
    Step out;
    out.from = static_cast<uint32_t>(random_() % kMembers);
    out.how = static_cast<uint32_t>(random_() % 6);
    Body& wanted = out.wanted;
    wanted.window = kWindow;
    wanted.number = numbers_[out.from]++;
    wanted.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_U64};
    std::vector<uint64_t> data{1};
    wanted.kind = OFFPATH_GET_ACCUMULATE;
    switch (out.how) {
      case 0:
        break;
      case 1:
        wanted.reduction.op = OFFPATH_OP_REPLACE;
        wanted.offset = 8;
        data = {1000 + i};
        break;
      case 2:
        wanted.kind = OFFPATH_COMPARE_AND_SWAP;
        wanted.reduction = {OFFPATH_OP_NONE, OFFPATH_ELEMENT_U64};
        wanted.offset = 16 + 8 * i;
        data = {2000 + i, 0};
        break;
      case 3:  // adds to every second one
      case 4:
        if (out.how == 3) wanted.kind = OFFPATH_ACCUMULATE;
        wanted.offset = 16 + 8 * kSteps;
        wanted.contiguous = false;
        wanted.layout = {16, 32, {{0, 8}, {16, 8}}};
        data.assign(kWide, 1);
        break;
      default:
        wanted.kind = OFFPATH_ACCUMULATE;
        wanted.offset = 16 + 8 * kSteps + 8 * 2 * kWide;
        data.assign(kWide, 1);
        break;
    }
    wanted.data.resize(8 * data.size());
    memcpy(wanted.data.data(), data.data(), wanted.data.size());
    wanted.bytes = wanted.kind == OFFPATH_COMPARE_AND_SWAP ? 8 : wanted.data.size();
    return out;
  }

  [[noreturn]] void serve(long ns) {
    Target target([](RequestId, Answer) {});
    const std::shared_ptr<memory::Port> memory = memory::make_direct();
    auto journal = std::make_shared<remote::Journal>(bytes(), kMembers, nullptr);
    if (!target.open(kClient, kTeam, kWindow, base(), sizeof(shared_->window), false, journal).ok()) _exit(1);
    std::vector<std::vector<uint8_t>> bodies;
    for (const Step& step : steps_) bodies.push_back(encode(step.wanted));
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    timer_t timer{};
    const itimerspec when{{0, 0}, {0, ns}};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &when, nullptr) != 0) _exit(1);
    for (uint32_t i = 0; i < kSteps; ++i) {
      const Answer answer = target.on_request(kClient, kTeam, steps_[i].from, i, memory, bodies[i]);
      if (!answer.status.ok()) _exit(1);
      if (answer.payload.size() >= 8) memcpy(&shared_->fetched[i], answer.payload.data(), 8);
      shared_->ended = i + 1;
    }
    _exit(0);
  }

  void check() {
    std::vector<uint64_t> numbers, tokens{0}, seen{shared_->window[1]};
    uint64_t dense = 0, spread = 0;
    for (uint32_t i = 0; i < kSteps; ++i) {
      const uint64_t fetched = shared_->fetched[i];
      switch (steps_[i].how) {
        case 0:
          numbers.push_back(fetched);
          break;
        case 1:
          tokens.push_back(1000 + i);
          seen.push_back(fetched);
          break;
        case 2:
          EXPECT_EQ(fetched, 0U);
          EXPECT_EQ(shared_->window[2 + i], 2000U + i);
          break;
        case 3:
        case 4:
          ++spread;
          break;
        default:
          ++dense;
      }
    }
    std::sort(numbers.begin(), numbers.end());
    for (uint64_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], i);
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, tokens);
    const uint64_t* const at = shared_->window + 2 + kSteps;
    for (uint32_t i = 0; i < 2 * kWide; ++i) EXPECT_EQ(at[i], i % 2 == 0 ? spread : 0) << i;
    for (uint32_t i = 0; i < kWide; ++i) EXPECT_EQ(at[2 * kWide + i], dense) << i;
  }

  std::mt19937_64 random_;
  Shared* const shared_;
  uint64_t numbers_[kMembers] = {};
  std::vector<Step> steps_;
};

TEST(OnesidedHome, AtomicsAreDoneOnceWhereverTheServiceIsKilled) {
  const char* seed_text = std::getenv("OFFPATH_TEST_SEED");
  const uint64_t first = seed_text == nullptr ? std::random_device{}() : std::strtoull(seed_text, nullptr, 0);
  for (uint64_t seed = first; seed < first + (seed_text == nullptr ? kKills : 1); ++seed) {
    Kill(seed).run();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "OFFPATH_TEST_SEED=" << seed;
  }
}

// Whoever has written it: it is read, and leads to no place outside.
TEST(OnesidedHome, AJournalOfAnything) {
  std::mt19937_64 random(std::random_device{}());
  struct Nowhere : Mortal {
    memory::Outcome write(uint64_t, const void* from, size_t bytes, memory::Ticket) const override {
      std::vector<uint8_t> looks(bytes);
      memcpy(looks.data(), from, bytes);
      return {};
    }
  };
  const Nowhere memory;
  const uint64_t bytes = remote::journal_bytes(kMembers);
  for (int i = 0; i < 20000; ++i) {
    const auto journal = std::make_unique<uint64_t[]>(bytes / 8);  // its ends are watched
    auto* const at = reinterpret_cast<uint8_t*>(journal.get());
    remote::Journal written(at, kMembers, nullptr);
    for (int value = 0; value < 30; ++value) {
      written.begin(static_cast<uint32_t>(random() % kMembers), random() % 100);
      written.note_fetched(std::vector<uint8_t>(1 + random() % 1023));
    }
    for (uint64_t hits = random() % 12; hits > 0; --hits) {
      const uint64_t word = random() % 2 == 0 ? 1 + random() % 12 : 1 + random() % (bytes / 8 - 1);
      journal[word] = random() % 3 == 0   ? random()
                      : random() % 3 == 0 ? UINT64_MAX - random() % 20000
                                          : random() % 20000;
    }
    const auto history = remote::History::read({at, bytes}, kMembers, memory);
    if (!history) continue;
    for (uint32_t from = 0; from < kMembers; ++from) {
      for (uint64_t number = 0; number < 100; ++number) (void)history->fetched(from, number);
    }
  }
}

TEST(OnesidedHome, NobodyIsGrantedBeforeAllHaveSaidWhatTheyHold) {
  Home home(3, false, 0, memory::make_direct());
  home.note_held(0, Home::Held::nothing);
  EXPECT_TRUE(home.lock(0, true).ok());
  EXPECT_FALSE(home.lock(0, true).ok()) << "twice";
  EXPECT_FALSE(home.lock(1, true).ok()) << "it has not said what it holds";
  home.note_held(1, Home::Held::exclusive);
  EXPECT_TRUE(home.grant().empty());
  home.note_held(2, Home::Held::nothing);
  EXPECT_TRUE(home.grant().empty()) << "member 1 holds it";
  EXPECT_TRUE(home.lock(2, false).ok());
  EXPECT_FALSE(home.unlock(2).ok());
  EXPECT_TRUE(home.unlock(1).ok());
  EXPECT_EQ(home.grant(), std::vector<uint32_t>{0});
  home.forget(0);
  EXPECT_EQ(home.grant(), std::vector<uint32_t>{2});
  EXPECT_TRUE(home.grant().empty());
}

TEST(OnesidedHome, ThroughAJournalMemoryIsReadInPlaceAndNotWrittenSo) {
  std::vector<uint64_t> memory(remote::journal_bytes(1) / 8 + 1);
  const auto journal = std::make_shared<remote::Journal>(reinterpret_cast<uint8_t*>(memory.data()), 1, nullptr);
  const std::shared_ptr<memory::Port> through = remote::make_journaled(memory::make_direct(), journal);
  uint64_t word = 5;
  const auto at = reinterpret_cast<uint64_t>(&word);
  EXPECT_EQ(through->look(at, 8), reinterpret_cast<const uint8_t*>(&word));
  EXPECT_EQ(through->view(at, 8), nullptr);
  const auto strided = memory::make_strided(through, at, memory::index_layout({8, 8, {{0, 8}}}));
  EXPECT_EQ(strided->look(0, 8), reinterpret_cast<const uint8_t*>(&word));
  EXPECT_EQ(strided->view(0, 8), nullptr);
}

// Of more values than have room, and of what was too long to be noted.
TEST(OnesidedHome, FetchedValuesThatAreGoneAreAnError) {
  std::vector<uint64_t> memory(remote::journal_bytes(1) / 8 + 1);
  auto* const bytes = reinterpret_cast<uint8_t*>(memory.data());
  remote::Journal journal(bytes, 1, nullptr);
  constexpr uint64_t kFetches = 1000;
  for (uint64_t number = 0; number < kFetches; ++number) {
    journal.begin(0, number);
    journal.note_fetched({reinterpret_cast<const uint8_t*>(&number), 8});
    journal.end();
  }
  journal.begin(0, kFetches);
  journal.end();  // a long one
  uint64_t counter = kFetches + 1;
  Home home(1, true, 0, memory::make_direct());
  ASSERT_TRUE(home.attach(reinterpret_cast<uint64_t>(&counter), 8));
  home.take_over({bytes, remote::journal_bytes(1)});
  Body fetch;
  fetch.window = kWindow;
  fetch.kind = OFFPATH_GET_ACCUMULATE;
  fetch.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_U64};
  fetch.offset = reinterpret_cast<uint64_t>(&counter);
  fetch.bytes = 8;
  const std::vector<uint8_t> one{1, 0, 0, 0, 0, 0, 0, 0};
  for (const uint64_t gone : {uint64_t{0}, kFetches}) {
    fetch.number = gone;
    EXPECT_EQ(home.perform(0, encode(fetch), one, true).status.code(), OFFPATH_ERR_SERVICE_LOST) << gone;
  }
  fetch.number = kFetches - 1;
  const Home::Outcome known = home.perform(0, encode(fetch), one, true);
  ASSERT_TRUE(known.status.ok()) << known.status.text();
  EXPECT_EQ(memcmp(known.fetched.data(), &fetch.number, 8), 0);
  EXPECT_EQ(counter, kFetches + 1) << "nothing was done again";
}

TEST(OnesidedHome, AJournalThatNamesOtherMemoryIsNone) {
  std::vector<uint64_t> memory(remote::journal_bytes(2) / 8 + 1), window(8), outside(8);
  auto* const bytes = reinterpret_cast<uint8_t*>(memory.data());
  remote::Journal journal(bytes, 2, nullptr);
  struct Deaf : Mortal {
    memory::Outcome write(uint64_t, const void*, size_t, memory::Ticket) const override { throw Killed(); }
  } port;
  journal.begin(1, 0);
  const uint64_t value = 7;
  EXPECT_THROW(static_cast<void>(journal.write(port, reinterpret_cast<uint64_t>(outside.data()),
                                               reinterpret_cast<const uint8_t*>(&value), 8)),
               Killed);
  Home home(2, false, reinterpret_cast<uint64_t>(window.data()), memory::make_direct());
  ASSERT_TRUE(home.attach(reinterpret_cast<uint64_t>(window.data()), 64));
  home.take_over({bytes, remote::journal_bytes(2)});
  EXPECT_EQ(outside[0], 0U);
  Body sum;
  sum.window = kWindow;
  sum.kind = OFFPATH_ACCUMULATE;
  sum.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_U64};
  sum.bytes = 8;
  EXPECT_EQ(home.perform(1, encode(sum), std::vector<uint8_t>(8), true).status.code(), OFFPATH_ERR_SERVICE_LOST);
}

TEST(OnesidedHome, WithoutAJournalNobodyKnowsOfAtomics) {
  uint64_t counter = 0;
  Home home(2, true, 0, memory::make_direct());
  ASSERT_TRUE(home.attach(reinterpret_cast<uint64_t>(&counter), 8));
  home.take_over({});
  Body sum;
  sum.window = kWindow;
  sum.kind = OFFPATH_ACCUMULATE;
  sum.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_U64};
  sum.offset = reinterpret_cast<uint64_t>(&counter);
  sum.bytes = 8;
  const std::vector<uint8_t> one{1, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(home.perform(1, encode(sum), one, true).status.code(), OFFPATH_ERR_SERVICE_LOST);
  EXPECT_EQ(counter, 0U);
  EXPECT_TRUE(home.perform(1, encode(sum), one, false).status.ok());
  EXPECT_EQ(counter, 1U);
  EXPECT_EQ(home.perform(1, encode(sum), {}, false).status.code(), OFFPATH_ERR_ARGUMENT) << "without its data";
  sum.bytes = 16;
  EXPECT_EQ(home.perform(1, encode(sum), std::vector<uint8_t>(16), false).status.code(), OFFPATH_ERR_RANGE);
}

TEST_F(OnesidedTarget, GivenUpItRefusesAsALostMember) {
  open();
  bool released = false;
  ASSERT_TRUE(target_.give_up(kClient, kTeam, kWindow, [&] { released = true; }).ok());
  EXPECT_TRUE(released);
  EXPECT_EQ(ask(put(0, {1})).status.code(), OFFPATH_ERR_PEER_LOST);
  EXPECT_EQ(ask(of_kind(OFFPATH_LOCK_SHARED)).status.code(), OFFPATH_ERR_PEER_LOST);
  EXPECT_TRUE(untouched());
  EXPECT_TRUE(target_.close(kClient, kTeam, kWindow, [] {}).ok());
  EXPECT_EQ(ask(put(0, {1})).status.code(), OFFPATH_ERR_RANGE);
}

// The process of who holds the lock goes on when its service dies, and knows nothing of it yet.
TEST_F(OnesidedTarget, NobodyIsGrantedWhatALivingMemberHolds) {
  ASSERT_TRUE(target_.open(kClient, kTeam, kWindow, base(), kBytes, false, nullptr, true).ok());
  EXPECT_EQ(ask(of_kind(OFFPATH_LOCK_EXCLUSIVE), 1).kind, Answer::Kind::reply);
  EXPECT_EQ(ask(of_kind(OFFPATH_LOCK_EXCLUSIVE), 2).kind, Answer::Kind::later);
  const RequestId second = last_;
  target_.lose_member(kClient, kTeam, 1, true);
  EXPECT_EQ(answered(second), OFFPATH_ERR_PEER_LOST);
  EXPECT_EQ(ask(of_kind(OFFPATH_LOCK_SHARED), 3).status.code(), OFFPATH_ERR_PEER_LOST);
}

// Whoever asks for the rest of it finds it as it was left.
TEST_F(OnesidedTarget, WhatALossHasCutKeepsTheLane) {
  constexpr uint64_t kLong = 4096;
  std::vector<uint64_t> large(kLong / 8), memory(remote::journal_bytes(4) / 8 + 1);
  const auto journal = std::make_shared<remote::Journal>(reinterpret_cast<uint8_t*>(memory.data()), 4, nullptr);
  const auto base = reinterpret_cast<uint64_t>(large.data());
  ASSERT_TRUE(target_.open(kClient, kTeam, kWindow, base, kLong, false, journal).ok());
  const Answer cut = ask(sum(0, kLong), 1);
  ASSERT_EQ(cut.kind, Answer::Kind::graph);
  const RequestId first = last_;
  ask(sum(8, 8), 2);
  const RequestId second = last_;
  const uint64_t value = 1;
  ASSERT_TRUE(cut.graph.memory->write(base, &value, 8).ok());
  target_.on_answered(kClient, kTeam, first, base::Status::error(OFFPATH_ERR_PEER_LOST, "lost"));
  EXPECT_EQ(answered(second), OFFPATH_ERR_PEER_LOST);
  const auto history =
      remote::History::read({reinterpret_cast<uint8_t*>(memory.data()), remote::journal_bytes(4)}, 4, *memory_);
  ASSERT_TRUE(history);
  EXPECT_EQ(history->done_bytes(1, 0), 8U);
  EXPECT_EQ(history->done_count(1), 0U);
}

}  // namespace
}  // namespace offpath::ops::onesided
