// SPDX-License-Identifier: BSD-3-Clause
// Memory that the service maps too: pages of the session's memfd behind the segment.
#include "base/result.hpp"
#include "client/lent.hpp"
#include "client/mapping.hpp"
#include "client/moved/memory_kind.hpp"
#include "client/pages.hpp"
#include "client/session.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>

using offpath::base::ErrnoGuard;
namespace layout = offpath::session;

void offpath_session::free_memory(uint64_t offset) {
  const uint64_t length = heap.release(offset);
  if (length != 0) give_back(offset + layout::kSegmentBytes, length);
}

// The service's mapping stays, so the pages are given back by a hole. Libraries that watch memory hear of the first call,
// which locked memory refuses.
void offpath_session::give_back(uint64_t at, uint64_t length) {
  if (madvise(segment.data() + at, length, MADV_REMOVE) == 0) return;
  fallocate(segment.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at),
            static_cast<off_t>(length));
}

bool offpath_session::provide(uint64_t at, uint64_t length) {
  return fallocate(segment.fd(), 0, static_cast<off_t>(at), static_cast<off_t>(length)) == 0;
}

// What tasks no longer use.
void offpath_session::free_late() {
  std::erase_if(to_free, [&](uint64_t offset) {
    const auto address = reinterpret_cast<uint64_t>(segment.data() + layout::kSegmentBytes + offset);
    if (fail_users(address, heap.length_at(offset))) return false;
    free_memory(offset);
    return true;
  });
}

namespace offpath::client {

void* reserve(offpath_session_t* session, uint64_t bytes) {
  if (!session->mine()) return nullptr;
  std::lock_guard lock(session->mutex);
  const auto offset = bytes <= session->heap.capacity() / 2 ? session->heap.allocate(bytes) : std::nullopt;
  return offset ? session->segment.data() + layout::kSegmentBytes + *offset : nullptr;
}

bool may_lack_pages() {
  ErrnoGuard guard;
  return moved::strict_overcommit();
}

bool provide(offpath_session_t* session, const void* address, uint64_t bytes) {
  if (!session->mine()) return false;
  if (!may_lack_pages()) return true;
  ErrnoGuard guard;
  return session->provide(static_cast<uint64_t>(static_cast<const uint8_t*>(address) - session->segment.data()), bytes);
}

void empty(offpath_session_t* session, void* address, uint64_t bytes) {
  if (!session->mine() || bytes == 0) return;
  ErrnoGuard guard;
  session->give_back(static_cast<uint64_t>(static_cast<uint8_t*>(address) - session->segment.data()), bytes);
}

}  // namespace offpath::client

extern "C" {

offpath_status_t offpath_memory_allocate(offpath_session_t* session, uint64_t bytes, void** address) {
  if (session == nullptr || address == nullptr || bytes == 0) return OFFPATH_ERR_ARGUMENT;
  ErrnoGuard guard;
  *address = nullptr;
  if (!session->mine()) return OFFPATH_ERR_STATE;
  std::lock_guard lock(session->mutex);
  const auto offset = session->heap.allocate(bytes);
  if (!offset) return OFFPATH_ERR_NO_MEMORY;
  const uint64_t at = layout::kSegmentBytes + *offset;
  // Now, as an error: a page that cannot be had when it is touched would end the process.
  if (!session->provide(at, bytes)) {
    session->heap.release(*offset);
    return OFFPATH_ERR_NO_MEMORY;
  }
  *address = session->segment.data() + at;
  return OFFPATH_OK;
}

void offpath_memory_free(offpath_session_t* session, void* address) {
  if (session == nullptr || address == nullptr || !session->mine()) return;
  ErrnoGuard guard;
  std::lock_guard lock(session->mutex);
  const auto at = static_cast<uint64_t>(static_cast<uint8_t*>(address) - session->segment.data());
  const uint64_t offset = at - layout::kSegmentBytes;
  if (session->fail_users(reinterpret_cast<uint64_t>(address), session->heap.length_at(offset))) {
    session->to_free.push_back(offset);
  } else {
    session->free_memory(offset);
  }
}

offpath_status_t offpath_memory_lend(offpath_session_t* session, uint64_t bytes, uint64_t alignment, void** address) {
  if (session == nullptr || address == nullptr || bytes == 0) return OFFPATH_ERR_ARGUMENT;
  ErrnoGuard guard;
  *address = nullptr;
  if (!session->mine() || session->life.lost || bytes > session->lends_up_to) return OFFPATH_ERR_STATE;
  try {
    *address = offpath::client::Lent::of_process().lend(*session, bytes, alignment);
  } catch (const std::bad_alloc&) {
  }
  return *address == nullptr ? OFFPATH_ERR_NO_MEMORY : OFFPATH_OK;
}

int offpath_memory_take_back(void* address) {
  if (address == nullptr) return 0;
  ErrnoGuard guard;
  return offpath::client::Lent::of_process().take_back(address) ? 1 : 0;
}

void offpath_memory_keep(offpath_session_t* session, const void* base, uint64_t bytes) {
  if (session == nullptr || base == nullptr || bytes == 0 || !session->mine()) return;
  ErrnoGuard guard;
  const auto begin = reinterpret_cast<uint64_t>(base);
  offpath::client::moved::keep({begin, begin + bytes});
}

uint32_t offpath_session_moved(offpath_session_t* session, offpath_moved_t* moved, uint32_t capacity) {
  if (session == nullptr || moved == nullptr || !session->mine()) return 0;
  std::lock_guard lock(session->mutex);
  if (session->moved_memory == nullptr) return 0;
  auto all = session->moved_memory->covered();
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.bytes() > b.bytes(); });
  const auto count = static_cast<uint32_t>(std::min<size_t>(all.size(), capacity));
  for (uint32_t i = 0; i < count; ++i) moved[i] = {reinterpret_cast<void*>(all[i].begin), all[i].bytes()};
  return count;
}

void offpath_memory_release(offpath_session_t* session, const void* base, uint64_t bytes) {
  if (session == nullptr || base == nullptr || bytes == 0 || !session->mine()) return;
  ErrnoGuard guard;
  const auto begin = reinterpret_cast<uint64_t>(base);
  offpath::client::moved::release({begin, begin + bytes});
}

offpath_status_t offpath_memory_file(offpath_session_t* session, const void* address, int* descriptor,
                                     uint64_t* offset_bytes) {
  if (session == nullptr || descriptor == nullptr || offset_bytes == nullptr) return OFFPATH_ERR_ARGUMENT;
  if (!session->mine()) return OFFPATH_ERR_STATE;
  std::lock_guard lock(session->mutex);
  const auto at = static_cast<uint64_t>(static_cast<const uint8_t*>(address) - session->segment.data());
  if (!session->heap.begins_at(at - layout::kSegmentBytes)) return OFFPATH_ERR_ARGUMENT;
  *descriptor = session->segment.fd();
  *offset_bytes = at;
  return OFFPATH_OK;
}

}  // extern "C"
