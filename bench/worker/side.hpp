// SPDX-License-Identifier: BSD-3-Clause
// Side: a worker with its engine and fabric on a thread of its own, and members whose memory it maps. Ranks exchange
// blocks, a few at a time, in turn out of many buffers, so that they come from memory and not from a cache.
#pragma once

#include "base/fd.hpp"
#include "base/memfd.hpp"
#include "engine/engine.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace worker_bench {

// What a rank sends from and receives into: shared memory, as clients of a service have it.
class Blocks {
 public:
  Blocks(std::uint32_t rank, std::size_t bytes);
  std::size_t count() const { return count_; }
  std::size_t bytes() const { return bytes_; }
  std::uint8_t* send(std::uint64_t number) const { return memory_.data() + number % count_ * bytes_; }
  std::uint8_t* receive(std::uint64_t number) const { return send(number) + count_ * bytes_; }
  // Whether what was received as one of these numbers came from that rank.
  bool is_right(std::uint64_t number, std::uint32_t from) const;
  std::shared_ptr<offpath::memory::Port> port() const;

 private:
  static std::uint8_t content(std::uint32_t rank, std::uint64_t slot);
  std::size_t bytes_, count_;
  offpath::base::Memfd memory_;
};

class Side : public offpath::engine::Observer, public offpath::engine::Neighbours {
 public:
  Side(std::uint32_t worker, std::unique_ptr<offpath::fabric::Fabric> fabric);
  ~Side() override;
  // Before begin(). `sides`: of both ranks; those of one service say what they have to say by neighbours.
  void serve(std::uint32_t rank, Blocks& blocks, const std::vector<Side*>& sides, bool one_service);
  std::vector<std::uint8_t> address() const { return fabric_->address(); }

  void begin(int core);
  // Its ranks exchange so many blocks, `depth` of them at a time.
  void go(std::uint64_t operations, std::uint32_t depth);
  bool is_done() const { return left_.load(std::memory_order_acquire) == 0; }
  bool has_failed() const { return failed_.load(std::memory_order_relaxed); }

  void on_step(offpath::engine::ClientId, uint64_t, uint32_t, uint64_t, bool) override {}
  void on_served(offpath::engine::ClientId, uint64_t, uint32_t, uint64_t, bool) override {}
  void on_finished(offpath::engine::ClientId client, uint64_t operation, offpath::base::Status status) override;
  void on_member_lost(offpath::engine::ClientId, uint64_t, uint32_t, offpath::engine::Loss) override { failed_ = true; }
  void send(uint32_t worker, const offpath::wire::Message& message, offpath::fabric::Bytes payload) override;
  void offer(uint32_t worker, uint64_t pull_id, std::shared_ptr<offpath::memory::Port> memory, uint64_t address,
             uint64_t bytes) override;

 private:
  struct Member {
    std::uint32_t rank;
    Blocks* blocks;
    offpath::engine::TeamHandle team;
    std::uint64_t posted = 0, until = 0;
    std::uint32_t may_post = 0;
  };
  static offpath::engine::Config config(std::uint32_t worker);
  void run(std::function<void()> task);
  bool run_tasks();
  bool post();
  void loop();

  std::unique_ptr<offpath::fabric::Fabric> fabric_;
  offpath::engine::Engine engine_;
  std::vector<Member> members_;
  std::vector<Side*> sides_;
  offpath::base::Fd alarm_;
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;
  std::atomic<std::uint64_t> left_{0};
  std::atomic<bool> failed_{false}, stopping_{false};
  std::thread thread_;
};

}  // namespace worker_bench
