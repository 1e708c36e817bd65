// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/calls/staging.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>

namespace offpath::mpi {
namespace {

constexpr uint64_t kMaxKeptBytes = uint64_t{256} << 20;
constexpr uint64_t kMinBytes = 4096;

struct Piece {
  std::byte* memory = nullptr;
  uint64_t capacity = 0;
};

// What was given back, without order.
std::mutex mutex;
std::array<Piece, 16> kept;
uint64_t kept_bytes;

}  // namespace

bool Staging::take(uint64_t bytes) {
  give_back();
  bytes = std::max(bytes, kMinBytes);
  {
    std::lock_guard lock(mutex);
    Piece* best = nullptr;
    for (Piece& piece : kept) {
      // A piece of more than twice the size is left to who needs it.
      const bool fits = piece.memory != nullptr && piece.capacity >= bytes && piece.capacity / 2 <= bytes;
      if (fits && (best == nullptr || piece.capacity < best->capacity)) best = &piece;
    }
    if (best != nullptr) {
      memory_ = best->memory;
      capacity_ = best->capacity;
      kept_bytes -= capacity_;
      *best = {};
      return true;
    }
  }
  memory_ = static_cast<std::byte*>(malloc(bytes));
  capacity_ = bytes;
  return memory_ != nullptr;
}

void Staging::give_back() {
  Piece given{std::exchange(memory_, nullptr), capacity_};
  if (given.memory == nullptr) return;
  {
    std::lock_guard lock(mutex);
    // It takes an empty place, or that of the smallest piece.
    Piece& place = *std::min_element(
        kept.begin(), kept.end(), [](const Piece& one, const Piece& other) { return one.capacity < other.capacity; });
    if (place.capacity < given.capacity && kept_bytes - place.capacity + given.capacity <= kMaxKeptBytes) {
      kept_bytes += given.capacity - place.capacity;
      std::swap(place, given);
    }
  }
  free(given.memory);
}

}  // namespace offpath::mpi
