// SPDX-License-Identifier: BSD-3-Clause
#include "memory/scratch.hpp"

#include "base/steady.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace offpath::memory {
namespace {
// Sizes are powers of two from here on, so that a block fits the next operation of about the same size.
constexpr uint64_t kSmallestBytes = 64 << 10;
constexpr uint64_t kLargestBytes = uint64_t{1} << 46;
}  // namespace

using base::Status;

class ScratchPool::Block : public Port {
 public:
  Block(uint8_t* data, uint64_t bytes) : data_(data), bytes_(bytes), steady_(data, bytes) {}
  ~Block() override {
    steady_ = {};
    munmap(data_, bytes_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Outcome read(void* to, uint64_t address, size_t bytes, Ticket) const override {
    if (view(address, bytes) == nullptr) return outside(address, bytes);
    memmove(to, data_ + address, bytes);
    return {};
  }
  Outcome write(uint64_t address, const void* from, size_t bytes, Ticket) const override {
    if (view(address, bytes) == nullptr) return outside(address, bytes);
    memmove(data_ + address, from, bytes);
    return {};
  }
  uint8_t* view(uint64_t address, size_t bytes) const override {
    return address <= bytes_ && bytes <= bytes_ - address ? data_ + address : nullptr;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  static Status outside(uint64_t address, size_t bytes) {
    return Status::error(OFFPATH_ERR_MEMORY_FAULT, "%zu bytes at offset %llu lie outside the scratch memory", bytes,
                         static_cast<unsigned long long>(address));
  }
  uint8_t* data_;
  uint64_t bytes_;
  base::Steady steady_;
};

ScratchPool::ScratchPool(uint64_t cached_bytes) : limit_(cached_bytes) {}
ScratchPool::~ScratchPool() = default;

std::shared_ptr<Port> ScratchPool::take(uint64_t bytes) {
  if (bytes > kLargestBytes) return nullptr;
  const uint64_t size = std::bit_ceil(std::max(bytes, kSmallestBytes));
  std::unique_ptr<Block> block;
  {
    std::lock_guard lock(mutex_);
    const auto newest =
        std::find_if(cached_.rbegin(), cached_.rend(), [&](const auto& cached) { return cached->bytes() == size; });
    if (newest != cached_.rend()) {
      block = std::move(*newest);
      cached_.erase(std::next(newest).base());
      cached_bytes_ -= size;
    }
  }
  if (block == nullptr) {
    void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return nullptr;
    block = std::make_unique<Block>(static_cast<uint8_t*>(data), size);
  }
  return std::shared_ptr<Port>(block.release(), [pool = shared_from_this()](Port* memory) {
    pool->give_back(std::unique_ptr<Block>(static_cast<Block*>(memory)));
  });
}

void ScratchPool::give_back(std::unique_ptr<Block> block) {
  if (block->bytes() > limit_) return;
  std::lock_guard lock(mutex_);
  cached_bytes_ += block->bytes();
  cached_.push_back(std::move(block));
  while (cached_bytes_ > limit_) {
    cached_bytes_ -= cached_.front()->bytes();
    cached_.pop_front();
  }
}

uint64_t ScratchPool::cached_bytes() const {
  std::lock_guard lock(mutex_);
  return cached_bytes_;
}

}  // namespace offpath::memory
