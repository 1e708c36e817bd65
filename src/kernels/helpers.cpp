// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/helpers.hpp"

#include <algorithm>
#include <system_error>

namespace offpath::kernels {

namespace {
constexpr uint64_t kWorthHelpBytes = 512 << 10;  // some 50 us of one core: ten times what waking another one takes
}

Run::Run(Kernel& kernel, std::vector<uint8_t*> arrays)
    : kernel_(kernel), arrays_(std::move(arrays)), blocks_(kernel.blocks()) {}

bool Run::run_block() {
  const uint64_t block = next_.fetch_add(1, std::memory_order_relaxed);
  if (block >= blocks_) return false;
  kernel_.run(block, arrays_);
  done_.fetch_add(1, std::memory_order_release);
  done_.notify_all();
  return true;
}

void Run::stop() {
  const uint64_t taken = std::min(next_.exchange(blocks_, std::memory_order_relaxed), blocks_);
  for (uint64_t seen; (seen = done()) < taken;) done_.wait(seen, std::memory_order_acquire);
}

Helpers::Helpers(uint32_t count, std::function<void()> prepare) : count_(count), prepare_(std::move(prepare)) {}

Helpers::~Helpers() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Helpers::offer(std::shared_ptr<Run> run) {
  {
    std::lock_guard lock(mutex_);
    if (threads_.empty()) start_threads();
    runs_.push_back(std::move(run));
  }
  changed_.notify_all();
}

void Helpers::start_threads() {
  try {
    while (threads_.size() < count_) threads_.emplace_back([this] { loop(); });
  } catch (const std::system_error&) {  // no more threads for this user: those that are there have to do
  }
}

void Helpers::loop() {
  prepare_();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !runs_.empty(); });
    if (stopping_) return;
    // To the end with it: another helper takes the next one first.
    const std::shared_ptr<Run> run = runs_.front();
    runs_.pop_front();
    runs_.push_back(run);
    lock.unlock();
    while (run->run_block()) {
    }
    lock.lock();
    std::erase(runs_, run);
  }
}

std::shared_ptr<Run> start_run(Kernel& kernel, std::vector<uint8_t*> arrays, Helpers* helpers) {
  auto run = std::make_shared<Run>(kernel, std::move(arrays));
  const bool is_long =
      kernel.blocks() > 1 && kernel.blocks() >= kWorthHelpBytes / std::max<uint64_t>(1, kernel.block_bytes());
  if (helpers != nullptr && is_long) helpers->offer(run);
  return {run.get(), [run](Run* ending) { ending->stop(); }};
}

}  // namespace offpath::kernels
