// SPDX-License-Identifier: BSD-3-Clause
#include "client/lent.hpp"

#include "base/result.hpp"
#include "client/moved/memory_kind.hpp"
#include "client/session.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace offpath::client {
namespace {

constexpr uint64_t kPage = 4096;
constexpr size_t kMostBlocks = 4096;  // each costs two mappings, of which a process has 65530
constexpr uint32_t kMostForks = 3;    // each copies what is lent
constexpr int kReadWrite = PROT_READ | PROT_WRITE;

// False: this thread has it already.
class Guard {
 public:
  explicit Guard(pthread_mutex_t& mutex) : mutex_(mutex), locked_(pthread_mutex_lock(&mutex) == 0) {}
  ~Guard() {
    if (locked_) pthread_mutex_unlock(&mutex_);
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  pthread_mutex_t& mutex_;
  bool locked_;
};

// As the C library's malloc keeps blocks that are mappings: how far the mapping begins before the header, and its length from
// the header on, with a bit that says so.
void write_header(uint8_t* memory, uint64_t bytes) {
  constexpr size_t kIsMapping = 2, kHeaderBytes = 2 * sizeof(size_t);
  auto* header = reinterpret_cast<size_t*>(memory) - 2;
  header[0] = -(bytes + kHeaderBytes);
  header[1] = (bytes + kHeaderBytes) | kIsMapping;
}

void* map_over(uint8_t* place, uint64_t bytes, int flags, int file, uint64_t offset) {
  void* mapped = mmap(place, bytes, kReadWrite, flags | MAP_FIXED, file, static_cast<off_t>(offset));
  return mapped == place ? mapped : nullptr;
}

}  // namespace

Lent& Lent::of_process() {
  static Lent* lent = new Lent;  // programs free memory until their very end
  return *lent;
}

void* Lent::lend(offpath_session& session, uint64_t bytes, uint64_t alignment) {
  constexpr uint64_t kMost = uint64_t{1} << 46;
  const bool sane = bytes > 0 && bytes <= kMost && alignment <= kMost && (alignment & (alignment - 1)) == 0;
  const Guard guard(mutex_);
  if (!sane || blocks_.size() >= kMostBlocks || forks_ >= kMostForks) return nullptr;
  Block block{};
  if (!prepare(session, bytes, std::max(alignment, kPage), block)) return nullptr;
  blocks_[block.memory] = block;
  if (!follows_forks_) follows_forks_ = pthread_atfork(&before_fork, &after_in_parent, &after_in_child) == 0;
  return block.memory;
}

bool Lent::prepare(offpath_session& session, uint64_t bytes, uint64_t alignment, Block& block) {
  std::lock_guard lock(session.mutex);
  if (session.lent_file == nullptr) {
    base::Fd file(fcntl(session.segment.fd(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!file.valid()) return false;
    session.lent_file = std::make_shared<base::Fd>(std::move(file));
  }
  block.session = &session;
  block.file = session.lent_file;
  block.bytes = (bytes + kPage - 1) / kPage * kPage;
  block.all.bytes = kPage + (alignment - kPage) + block.bytes + kPage;
  const auto offset = session.heap.allocate(block.all.bytes);
  if (!offset) return false;
  block.file_offset = session::kSegmentBytes + *offset;
  block.all.data = session.segment.data() + block.file_offset;
  const auto lowest = reinterpret_cast<uint64_t>(block.all.data) + kPage;
  block.memory = block.all.data + kPage + (alignment - lowest % alignment) % alignment;
  // Where memory is promised only if it is there, a page that cannot be had when it is touched would end the process.
  const bool there =
      !moved::strict_overcommit() ||
      fallocate(block.file->get(), 0, static_cast<off_t>(block.file_offset), static_cast<off_t>(block.all.bytes)) == 0;
  if (!there || map_over(block.memory + block.bytes, kPage, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == nullptr) {
    session.heap.release(*offset);
    return false;
  }
  write_header(block.memory, block.bytes);
  ++session.lent_count;
  session.lent_bytes += bytes;
  return true;
}

bool Lent::take_back(void* address) {
  const Guard guard(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return false;
  give_back(found->second);
  blocks_.erase(found);
  return true;
}

void Lent::give_back(const Block& block) {
  // The service's mapping stays, so pages are given back by a hole.
  if (block.file != nullptr) {
    fallocate(block.file->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(block.file_offset),
              static_cast<off_t>(block.all.bytes));
  }
  if (block.session == nullptr) {
    munmap(block.all.data, block.all.bytes);
    return;
  }
  // As it was, whatever the program has done to it; libraries that watch memory hear of it.
  if (map_over(block.all.data, block.all.bytes, MAP_SHARED, block.file->get(), block.file_offset) == nullptr) return;
  std::lock_guard lock(block.session->mutex);
  block.session->heap.release(block.file_offset - session::kSegmentBytes);
}

std::vector<base::Memfd::Stretch> Lent::leave(const offpath_session& session) {
  const Guard guard(mutex_);
  std::vector<base::Memfd::Stretch> stay;
  for (auto& [memory, block] : blocks_) {
    if (!session.segment.holds(block.all.data)) continue;
    block.session = nullptr;
    stay.push_back(block.all);
  }
  return stay;  // by address, as the blocks are
}

// ---- forks --------------------------------------------------------------------------------------------------------

void Lent::before_fork() {
  const base::ErrnoGuard errno_guard;
  Lent& lent = of_process();
  lent.locked_by_fork_ = pthread_mutex_lock(&lent.mutex_) == 0;
  if (lent.blocks_.empty()) return;
  ++lent.forks_;
  offpath_gate_open(&lent.copied_);
}

void Lent::after_in_parent() {
  const base::ErrnoGuard errno_guard;
  Lent& lent = of_process();
  offpath_gate_await(&lent.copied_);
  if (lent.locked_by_fork_) pthread_mutex_unlock(&lent.mutex_);
}

void Lent::after_in_child() {
  const base::ErrnoGuard errno_guard;
  Lent& lent = of_process();
  offpath_gate_enter(&lent.copied_);
  for (auto& [memory, block] : lent.blocks_) {
    copy(block);
    block.session = nullptr;
    block.file.reset();  // the last one closes it
  }
  offpath_gate_pass(&lent.copied_);
  lent.mutex_ = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
}

// Pages that nobody has touched stay so.
void Lent::copy(const Block& block) {
  constexpr int kMostParts = 64;  // each becomes a mapping
  const int file = block.file == nullptr ? -1 : block.file->get();
  if (file < 0) return;  // it is a copy
  uint64_t done = 0;
  for (int part = 0; done < block.bytes; ++part) {
    const auto at = static_cast<off_t>(block.file_offset + static_cast<uint64_t>(block.memory - block.all.data) + done);
    const auto end = at + static_cast<off_t>(block.bytes - done);
    off_t data = at, hole = end;
    if (part < kMostParts) {
      data = lseek(file, at, SEEK_DATA);
      data = data < 0 ? end : std::min(data, end);
      hole = data == end ? end : std::min(lseek(file, data, SEEK_HOLE), end);
    }
    uint8_t* const place = block.memory + done;
    const auto empty = static_cast<uint64_t>(data - at), full = static_cast<uint64_t>(hole - data);
    if (empty > 0) map_over(place, empty, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    // The same pages until they are written to: then they are the child's. So each is, now.
    if (full > 0 && map_over(place + empty, full, MAP_PRIVATE | MAP_NORESERVE, file, static_cast<uint64_t>(data)) &&
        madvise(place + empty, full, MADV_POPULATE_WRITE) != 0) {  // before Linux 5.14
      for (volatile uint8_t* page = place + empty; page < place + empty + full; page += kPage) *page = *page;
    }
    done += empty + full;
  }
}

}  // namespace offpath::client
