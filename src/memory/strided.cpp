// SPDX-License-Identifier: BSD-3-Clause
#include "memory/join.hpp"

#include <algorithm>
#include <optional>

namespace offpath::memory {

using base::Status;

class LayoutIndex {
 public:
  explicit LayoutIndex(const Layout& layout) : size_(layout.size_bytes), extent_(layout.extent_bytes) {
    uint64_t sum = 0;
    valid_ = size_ > 0;
    for (const Range& range : layout.ranges) {
      if (range.bytes == 0) continue;  // each range that is left advances a transfer
      ranges_.push_back(range);
      starts_.push_back(sum);
      valid_ = valid_ && !__builtin_add_overflow(sum, range.bytes, &sum);
    }
    valid_ = valid_ && sum == size_;
  }

  bool valid() const { return valid_; }

  // Walks over data bytes of elements that begin at `base`. Precondition: valid().
  class Cursor {
   public:
    Cursor(const LayoutIndex& layout, uint64_t base, uint64_t byte)
        : layout_(layout), base_(base), element_(byte / layout.size_) {
      const uint64_t within = byte % layout.size_;
      const auto after = std::upper_bound(layout.starts_.begin(), layout.starts_.end(), within);
      range_ = static_cast<size_t>(after - layout.starts_.begin()) - 1;
      skip_ = within - layout.starts_[range_];
    }
    // The next bytes that lie together, at most `bytes`. False: they lie outside the address space.
    bool take(uint64_t bytes, Range& out) {
      if (element_ > INT64_MAX) return false;  // below, the product fits into 127 bits
      const Range& range = layout_.ranges_[range_];
      const __int128 at =
          static_cast<__int128>(element_) * layout_.extent_ + base_ + range.offset + static_cast<__int128>(skip_);
      out = {static_cast<int64_t>(static_cast<uint64_t>(at)), std::min(bytes, range.bytes - skip_)};
      skip_ += out.bytes;
      if (skip_ == range.bytes) {
        skip_ = 0;
        if (++range_ == layout_.ranges_.size()) range_ = 0, ++element_;
      }
      return at >= 0 && at + out.bytes <= UINT64_MAX;
    }

   private:
    const LayoutIndex& layout_;
    uint64_t base_;
    uint64_t element_;
    size_t range_ = 0;
    uint64_t skip_ = 0;  // bytes of the range already taken
  };

 private:
  uint64_t size_;
  int64_t extent_;
  bool valid_ = false;
  std::vector<Range> ranges_;
  std::vector<uint64_t> starts_;  // by range: data bytes before it
};

namespace {

class StridedPort : public Port {
 public:
  StridedPort(std::shared_ptr<Port> memory, uint64_t base, std::shared_ptr<const LayoutIndex> layout)
      : memory_(std::move(memory)), base_(base), layout_(std::move(layout)) {}

  Outcome read(void* to, uint64_t address, size_t bytes, Ticket ticket) const override {
    return transfer(address, bytes, ticket, [&](uint64_t at, std::span<const Range> ranges, Ticket part) {
      return memory_->gather(static_cast<uint8_t*>(to) + at, ranges, part);
    });
  }
  Outcome write(uint64_t address, const void* from, size_t bytes, Ticket ticket) const override {
    return transfer(address, bytes, ticket, [&](uint64_t at, std::span<const Range> ranges, Ticket part) {
      return memory_->scatter(ranges, static_cast<const uint8_t*>(from) + at, part);
    });
  }
  bool prompt() const override { return memory_->prompt(); }
  uint8_t* view(uint64_t address, size_t bytes) const override {
    Range range;
    return is_one(address, bytes, range) ? memory_->view(static_cast<uint64_t>(range.offset), bytes) : nullptr;
  }
  const uint8_t* look(uint64_t address, size_t bytes) const override {
    Range range;
    return is_one(address, bytes, range) ? memory_->look(static_cast<uint64_t>(range.offset), bytes) : nullptr;
  }

 private:
  // Whether they lie together, and where.
  bool is_one(uint64_t address, size_t bytes, Range& range) const {
    return layout_->valid() && LayoutIndex::Cursor(*layout_, base_, address).take(bytes, range) && range.bytes == bytes;
  }
  // Hands over as many ranges at once as one system call of CMA takes.
  template <typename Move>
  Outcome transfer(uint64_t address, size_t bytes, Ticket ticket, Move move) const {
    if (!layout_->valid()) {
      return Status::error(OFFPATH_ERR_ARGUMENT, "a layout's size is 0 or not the sum of its ranges");
    }
    LayoutIndex::Cursor cursor(*layout_, base_, address);
    Range ranges[1024];
    std::optional<Join> join;  // of several; one speaks for itself
    uint64_t moved = 0;
    while (moved < bytes) {
      uint64_t next = moved;
      const auto taken = take(cursor, bytes, next, ranges);
      if (!taken) {
        const Status failure = Status::error(OFFPATH_ERR_MEMORY_FAULT, "a layout leaves the address space");
        if (!join) return failure;
        join->next(), join->add(failure);
        break;
      }
      if (!join && next == bytes) return move(moved, *taken, ticket);
      if (!join) join.emplace(ticket);
      if (!join->add(move(moved, *taken, join->next()))) break;
      moved = next;
    }
    return join ? join->end() : Outcome();
  }

  // The next of `bytes` bytes that fit into `ranges`; `at`: how far that is. Nothing: they leave the address space.
  static std::optional<std::span<const Range>> take(LayoutIndex::Cursor& cursor, uint64_t bytes, uint64_t& at,
                                                    std::span<Range> ranges) {
    size_t count = 0;
    while (at < bytes && count < ranges.size()) {
      Range range;
      if (!cursor.take(bytes - at, range)) return std::nullopt;
      at += range.bytes;
      const bool adjoins = count > 0 && static_cast<uint64_t>(ranges[count - 1].offset) + ranges[count - 1].bytes ==
                                            static_cast<uint64_t>(range.offset);
      if (adjoins) {
        ranges[count - 1].bytes += range.bytes;
      } else {
        ranges[count++] = range;
      }
    }
    return ranges.first(count);
  }

  std::shared_ptr<Port> memory_;
  uint64_t base_;
  std::shared_ptr<const LayoutIndex> layout_;
};

}  // namespace

std::shared_ptr<const LayoutIndex> index_layout(const Layout& layout) { return std::make_shared<LayoutIndex>(layout); }

std::unique_ptr<Port> make_strided(std::shared_ptr<Port> memory, uint64_t base,
                                   std::shared_ptr<const LayoutIndex> layout) {
  return std::make_unique<StridedPort>(std::move(memory), base, std::move(layout));
}

}  // namespace offpath::memory
