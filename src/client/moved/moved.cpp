// SPDX-License-Identifier: BSD-3-Clause
#include "client/moved/moved.hpp"

#include "client/mapping.hpp"
#include "client/moved/keep.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace offpath::client::moved {
namespace {

constexpr uint32_t kMostForks = 3;  // each copies what was moved
constexpr uint64_t kSliceBytes = 4 << 20;

// Calls that do nothing. Another library may have changed where they go, at any time.
bool is_heard(const offpath_watch_t& watch) {
  watch.probe(1);
  mmap(nullptr, 0, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const nowhere = reinterpret_cast<void*>(1);
  munmap(nowhere, 0);
  mremap(nowhere, 0, 0, 0);
  madvise(nullptr, 0, MADV_NORMAL);
  return watch.probe(0) == 15;
}

}  // namespace

std::unique_ptr<Moved> Moved::make(const base::Memfd& segment, Heap& heap) {
  const uint32_t due = Mapping::from_environment().moves_from;
  const bool usual_pages = sysconf(_SC_PAGESIZE) == static_cast<long>(kPage);
  if (due == 0 || heap.capacity() == 0 || !usual_pages || strict_overcommit()) return nullptr;
  if (watch() == nullptr || !is_heard(*watch())) return nullptr;
  const int source = watch()->join(segment.fd(), reinterpret_cast<uint64_t>(segment.data()), segment.bytes());
  if (source < 0) return nullptr;
  return std::unique_ptr<Moved>(new Moved(segment, heap, *watch(), source, due));
}

Moved::Moved(const base::Memfd& segment, Heap& heap, const offpath_watch_t& watch, int source, uint32_t due)
    : segment_(segment),
      heap_(heap),
      watch_(watch),
      source_(source),
      uses_(due),
      pagemap_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {
  struct stat info {};
  if (fstat(segment.fd(), &info) != 0) return;
  device_ = uint64_t{major(info.st_dev)} << 32 | minor(info.st_dev);
  inode_ = info.st_ino;
}

// The pages stay where they are, and stay watched: the program goes on using them.
Moved::~Moved() { watch_.leave(source_, stretches_.empty() ? 0 : 1); }

void Moved::use(const Named& named) {
  if (!stretches_.empty()) check(named.all);
  if (inode_ != 0) {
    for (const Extent& pages : named.dense) consider(pages);
  }
  if (changed_) publish();
}

// ---- what has become of it ----------------------------------------------------------------------------------------

void Moved::check(std::span<const Extent> used) {
  if (watch_.doubts() != doubts_seen_ || objects_changed() != objects_seen_) return look_again();
  for (const Extent& extent : used) {
    const auto first = std::partition_point(stretches_.begin(), stretches_.end(),
                                            [&](const Stretch& s) { return s.pages.end <= extent.begin; });
    for (auto it = first; it != stretches_.end() && it->pages.begin < extent.end; ++it) {
      const uint64_t begin = std::max(extent.begin, it->pages.begin) / kPage * kPage;
      const uint64_t end = std::min(extent.end, it->pages.end);
      if (it->known && !in_place({begin, end})) return look_again();
    }
  }
}

// Memory that free() or realloc() of the C library gave back to the kernel unseen is not there, or private by now.
bool Moved::in_place(const Extent& extent) const {
  constexpr uint64_t kPresent = uint64_t{1} << 63, kOfFile = uint64_t{1} << 61;
  constexpr uint64_t kBoth = kPresent | kOfFile;
  uint64_t words[512];
  const uint64_t last = (extent.end + kPage - 1) / kPage;
  for (uint64_t page = extent.begin / kPage; page < last;) {
    const size_t count = std::min<uint64_t>(last - page, std::size(words));
    const size_t bytes = count * sizeof(words[0]);
    const ssize_t got = pread(pagemap_.get(), words, bytes, static_cast<off_t>(page * sizeof(words[0])));
    if (got != static_cast<ssize_t>(bytes)) return false;
    for (size_t i = 0; i < count; ++i) {
      if ((words[i] & kBoth) != kBoth) return false;
    }
    page += count;
  }
  return true;
}

// Twice: mappings change while they are read, and what is not seen is given up.
void Moved::look_again() {
  doubts_seen_ = watch_.doubts();
  objects_seen_ = objects_changed();
  changed_ = true;
  const auto data = reinterpret_cast<uint64_t>(segment_.data());
  const Extent own{data, data + segment_.bytes()};
  std::vector<Mapped> mapped, again;
  const bool known = find_mapped(device_, inode_, own, mapped) && find_mapped(device_, inode_, own, again);
  mapped.insert(mapped.end(), again.begin(), again.end());
  std::sort(mapped.begin(), mapped.end(),
            [](const Mapped& a, const Mapped& b) { return a.pages.begin < b.pages.begin; });
  const auto before = std::exchange(stretches_, {});
  for (Stretch stretch : before) {
    stretch.known = known;
    const Extents there =
        known ? still_there(stretch.pages, session::kSegmentBytes + stretch.offset, mapped) : Extents{stretch.pages};
    there == Extents{stretch.pages} ? stretches_.push_back(stretch) : settle(stretch, there);
  }
}

// What is there goes on as stretches of their own.
void Moved::settle(const Stretch& stretch, const Extents& there) {
  ++totals_.dropped;
  full_ = false;
  const auto offset_of = [&](uint64_t address) { return stretch.offset + (address - stretch.pages.begin); };
  uint64_t last = stretch.offset;  // of the heap's stretches
  const auto cut = [&](uint64_t offset) {
    heap_.split(last, offset);
    last = std::max(last, offset);
  };
  for (const Extent& part : there) {
    watch_.begin();
    const int entry = watch_.cover(part.begin, part.end);  // the old one stays until then
    watch_.end();
    cut(offset_of(part.begin));
    if (part.end < stretch.pages.end) cut(offset_of(part.end));
    stretches_.push_back({part, offset_of(part.begin), entry, entry >= 0});
  }
  watch_.uncover(stretch.entry);
  for (const Extent& part : minus(stretch.pages, there)) {
    punch(offset_of(part.begin), part.bytes());
    heap_.release(offset_of(part.begin));
  }
}

void Moved::punch(uint64_t heap_offset, uint64_t bytes) const {
  fallocate(segment_.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(session::kSegmentBytes + heap_offset), static_cast<off_t>(bytes));
}

// ---- moving -------------------------------------------------------------------------------------------------------

Extents Moved::covered() const {
  Extents out;
  out.reserve(stretches_.size());
  for (const Stretch& stretch : stretches_) out.push_back(stretch.pages);
  return out;
}

void Moved::consider(const Extent& pages) {
  if (full_ || segment_.holds(reinterpret_cast<const void*>(pages.begin))) return;
  Extents left = minus(pages, covered());
  std::erase_if(left, [](const Extent& part) { return part.bytes() < kShortestBytes; });
  if (left.empty() || !uses_.count(pages)) return;
  uses_.forget(pages);
  for (const Extent& part : left) {
    watch_.begin();
    if (watch_.is_kept(part.begin, part.end)) {
      ++totals_.refused_window;
    } else if (!is_plain(part)) {
      ++totals_.refused_kind;
      uses_.refuse(pages);
    } else if (!move(part)) {
      ++totals_.refused_room;
      full_ = true;
    }
    watch_.end();
  }
}

bool Moved::move(const Extent& pages) {
  if (stretches_.size() >= session::kMaxAliases || watch_.forks() >= kMostForks || !pagemap_.valid() ||
      !is_heard(watch_))
    return false;
  const auto offset = heap_.allocate(pages.bytes() + kPage);  // nothing grows into what lies behind
  if (!offset) return false;
  const int entry = watch_.cover(pages.begin, pages.begin);
  const uint64_t bytes = entry < 0 ? 0 : move_pages(pages, *offset);
  if (bytes > 0) watch_.extend(entry, pages.begin + bytes);
  if (bytes == 0) {
    if (entry >= 0) watch_.uncover(entry);
    heap_.release(*offset);
    return false;
  }
  if (stretches_.empty()) {
    doubts_seen_ = watch_.doubts();
    objects_seen_ = objects_changed();
  }
  const Stretch stretch{{pages.begin, pages.begin + bytes}, *offset, entry, true};
  const auto after = std::partition_point(stretches_.begin(), stretches_.end(),
                                          [&](const Stretch& s) { return s.pages.begin < pages.begin; });
  stretches_.insert(after, stretch);
  ++totals_.moved;
  totals_.moved_bytes += bytes;
  changed_ = true;
  return true;
}

// How many could be. In slices: there are never many more pages than before. A mapping that cannot be made leaves what was there.
uint64_t Moved::move_pages(const Extent& pages, uint64_t heap_offset) {
  uint64_t moved = 0;
  while (moved < pages.bytes()) {
    const uint64_t bytes = std::min(kSliceBytes, pages.bytes() - moved);
    const uint64_t at = session::kSegmentBytes + heap_offset + moved;
    void* place = reinterpret_cast<void*>(pages.begin + moved);
    // Now, as an error: a page that cannot be had when it is touched would end the process.
    if (fallocate(segment_.fd(), 0, static_cast<off_t>(at), static_cast<off_t>(bytes)) != 0) break;
    memcpy(segment_.data() + at, place, bytes);
    void* mapped = mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, segment_.fd(),
                        static_cast<off_t>(at));
    if (mapped != place) {
      punch(heap_offset + moved, bytes);
      break;
    }
    moved += bytes;
  }
  return moved;
}

void Moved::publish() {
  changed_ = false;
  auto& header = *reinterpret_cast<session::SegmentHeader*>(segment_.data());
  auto* table = reinterpret_cast<session::AliasRecord*>(segment_.data() + session::kAliasesOffset);
  const uint32_t version = header.aliases_version.load(std::memory_order_relaxed);
  header.aliases_version.store(version + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  uint32_t count = 0;
  for (const Stretch& stretch : stretches_) {
    if (stretch.known && count < session::kMaxAliases)
      table[count++] = {stretch.pages.begin, stretch.pages.bytes(), stretch.offset};
  }
  header.aliases_count = count;
  header.aliases_version.store(version + 2, std::memory_order_release);
}

}  // namespace offpath::client::moved
