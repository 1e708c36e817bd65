// SPDX-License-Identifier: BSD-3-Clause
// Memory that the service maps too: pages of the session's memfd behind the segment.
#include "base/result.hpp"
#include "client/session.hpp"

#include <fcntl.h>

using offpath::base::ErrnoGuard;
namespace layout = offpath::session;

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
  if (fallocate(session->segment.fd(), 0, static_cast<off_t>(at), static_cast<off_t>(bytes)) != 0) {
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
  const uint64_t length = session->heap.release(at - layout::kSegmentBytes);
  if (length == 0) return;
  // The service's mapping stays, so the pages are given back by a hole.
  fallocate(session->segment.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at),
            static_cast<off_t>(length));
}

void offpath_memory_keep(offpath_session_t* session, const void* base, uint64_t bytes) {
  if (session == nullptr || base == nullptr || bytes == 0 || !session->mine()) return;
  ErrnoGuard guard;
  std::lock_guard lock(session->mutex);
  const auto begin = reinterpret_cast<uint64_t>(base);
  if (session->moved_memory != nullptr) session->moved_memory->keep({begin, begin + bytes});
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
