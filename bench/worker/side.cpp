// SPDX-License-Identifier: BSD-3-Clause
#include "side.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "../../apps/kit/clocks.hpp"
#include "counted.hpp"

namespace worker_bench {

using namespace offpath;

namespace {
constexpr std::size_t kWorkingSetBytes = 64 << 20;  // each way
constexpr std::size_t kFewestBlocks = 4;
constexpr std::chrono::microseconds kSpin{20};  // as workers with cores of their own
}  // namespace

Blocks::Blocks(std::uint32_t rank, std::size_t bytes)
    : bytes_(bytes), count_(std::max(kFewestBlocks, kWorkingSetBytes / bytes)) {
  auto memory = base::Memfd::create("offpath-worker", 2 * count_ * bytes_);
  if (!memory.ok()) throw std::runtime_error(memory.status().text());
  memory_ = std::move(memory.value());
  for (std::size_t slot = 0; slot < count_; ++slot) {
    memset(send(slot), content(rank, slot), bytes_);
    memset(receive(slot), 0, bytes_);
  }
}

std::uint8_t Blocks::content(std::uint32_t rank, std::uint64_t slot) {
  return static_cast<std::uint8_t>(1 + (slot * 2 + rank) % 255);
}

bool Blocks::is_right(std::uint64_t number, std::uint32_t from) const {
  const std::uint8_t wanted = content(from, number % count_);
  const std::uint8_t* const block = receive(number);
  return block[0] == wanted && memcmp(block, block + 1, bytes_ - 1) == 0;
}

std::shared_ptr<memory::Port> Blocks::port() const {
  const memory::Region region{reinterpret_cast<std::uint64_t>(memory_.data()), memory_.bytes(), memory_.data(), {}};
  return std::make_shared<CountedPort>(memory::make_mapped(region, memory::make_direct()));
}

Side::Side(std::uint32_t worker, std::unique_ptr<fabric::Fabric> fabric)
    : fabric_(std::move(fabric)),
      engine_(config(worker), *fabric_, *this, *this),
      alarm_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Side::~Side() {
  if (thread_.joinable()) {
    run([this] { stopping_ = true; });
    thread_.join();
  }
  fabric_->set_receiver(nullptr);
}

engine::Config Side::config(std::uint32_t worker) {
  engine::Config config;
  config.worker = worker;
  return config;
}

void Side::serve(std::uint32_t rank, Blocks& blocks, const std::vector<Side*>& sides, bool one_service) {
  sides_ = sides;
  engine_.add_client(rank + 1, blocks.port());
  engine::TeamSpec spec;
  spec.rank = rank;
  spec.client = rank + 1;
  std::vector<engine::WorkerAddress> members;
  for (Side* const side : sides) {
    const auto worker = static_cast<std::uint32_t>(std::find(sides.begin(), sides.end(), side) - sides.begin());
    members.push_back({one_service || side == this, worker, side->address()});
  }
  spec.members = engine::Roster(members);
  members_.push_back({rank, &blocks, engine_.add_team(std::move(spec)).value()});
}

void Side::begin(int core) {
  thread_ = std::thread([this, core] {
    kit::pin(core);
    loop();
  });
}

void Side::go(std::uint64_t operations, std::uint32_t depth) {
  left_ = operations * members_.size();
  run([this, operations, depth] {
    for (Member& member : members_) {
      member.until = member.posted + operations;
      member.may_post = depth;
    }
  });
}

void Side::on_finished(engine::ClientId client, uint64_t, base::Status status) {
  if (!status.ok()) failed_ = true;
  for (Member& member : members_) member.may_post += member.rank + 1 == client ? 1 : 0;
  left_.fetch_sub(1, std::memory_order_release);
}

bool Side::post() {
  bool any = false;
  for (Member& member : members_) {
    for (; member.may_post > 0 && member.posted < member.until; --member.may_post, ++member.posted) {
      const std::uint32_t other = 1 - member.rank;
      const auto place = [](const std::uint8_t* at) {
        return graph::client_place(reinterpret_cast<std::uint64_t>(at));
      };
      graph::Graph graph;
      graph.offer(other, 0, place(member.blocks->send(member.posted)), member.blocks->bytes());
      graph.pull(other, 0, place(member.blocks->receive(member.posted)), member.blocks->bytes());
      engine_.post(member.team, member.posted, std::move(graph), member.posted);
      any = true;
    }
  }
  return any;
}

void Side::run(std::function<void()> task) {
  bool first;
  {
    std::lock_guard lock(mutex_);
    first = tasks_.empty();
    tasks_.push_back(std::move(task));
  }
  if (!first) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(alarm_.get(), &one, sizeof(one));
}

bool Side::run_tasks() {
  std::vector<std::function<void()>> tasks;
  {
    std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const auto& task : tasks) task();
  return !tasks.empty();
}

void Side::loop() {
  auto last_busy = std::chrono::steady_clock::now();
  while (!stopping_) {
    bool busy = run_tasks();
    busy |= post();
    busy |= engine_.progress();
    const auto now = std::chrono::steady_clock::now();
    if (busy) last_busy = now;
    if (busy || now - last_busy < kSpin || !fabric_->arm()) continue;
    pollfd waits[2] = {{alarm_.get(), POLLIN, 0}, {fabric_->event_fd(), POLLIN, 0}};
    poll(waits, 2, -1);
    std::uint64_t value;
    [[maybe_unused]] const ssize_t got = read(alarm_.get(), &value, sizeof(value));
  }
}

void Side::send(uint32_t worker, const wire::Message& message, fabric::Bytes payload) {
  Side& to = *sides_[worker];
  to.run([&to, message, body = std::vector<std::uint8_t>(payload.begin(), payload.end())] {
    to.engine_.on_neighbour_message(message, body);
  });
}

void Side::offer(uint32_t worker, uint64_t pull_id, std::shared_ptr<memory::Port> memory, uint64_t address,
                 uint64_t bytes) {
  Side& to = *sides_[worker];
  to.run([=, &to] { to.engine_.on_neighbour_offer(pull_id, memory, address, bytes); });
}

}  // namespace worker_bench
