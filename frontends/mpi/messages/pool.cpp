// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/pool.hpp"

#include "client/pages.hpp"

#include <algorithm>
#include <utility>

namespace offpath::mpi {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kTimes = 2;  // as long as what is given out

uint64_t pages_of(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

void Pool::open(offpath_session_t* session, uint64_t bytes) {
  session_ = session;
  left_ = bytes / kPage * kPage;
  while (left_ > 0 && (memory_ = static_cast<std::byte*>(client::reserve(session, kTimes * left_))) == nullptr) {
    left_ = left_ / 2 / kPage * kPage;
  }
  heap_ = client::Heap(kTimes * left_);
}

void Pool::close() {
  if (memory_ != nullptr) offpath_memory_free(session_, std::exchange(memory_, nullptr));
}

std::byte* Pool::take(uint64_t bytes) {
  const auto offset = pages_of(bytes) <= left_ ? heap_.allocate(bytes) : std::nullopt;
  if (!offset) return nullptr;
  std::byte* const region = memory_ + *offset;
  left_ -= pages_of(bytes);
  if (client::provide(session_, region, pages_of(bytes))) return region;
  give_back(region, bytes);
  return nullptr;
}

void Pool::give_back(std::byte* region, uint64_t used) {
  const uint64_t pages = heap_.release(static_cast<uint64_t>(region - memory_));
  client::empty(session_, region, client::may_lack_pages() ? pages : std::min(pages, pages_of(used)));
  left_ += pages;
}

}  // namespace offpath::mpi
