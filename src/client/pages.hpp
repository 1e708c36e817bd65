// SPDX-License-Identifier: BSD-3-Clause
// Shared memory that is had in advance, and its pages only while they hold something. For front ends that are linked with the
// client; not part of the C API.
#pragma once

#include <offpath/offpath.h>

#include <cstdint>

namespace offpath::client {

// As offpath_memory_allocate, but without pages: they come when they are touched. At most half of what there is, as programs
// want some, too. nullptr: there is no memory.
void* reserve(offpath_session_t* session, uint64_t bytes);
// Whether a page that is touched may fail to be there: on systems that promise no more memory than they have.
bool may_lack_pages();
// Before pages of it are touched; nothing happens on other systems. False: they cannot be had.
bool provide(offpath_session_t* session, const void* address, uint64_t bytes);
// They hold nothing any more. Whole pages.
void empty(offpath_session_t* session, void* address, uint64_t bytes);

}  // namespace offpath::client
