// SPDX-License-Identifier: BSD-3-Clause
// What a dying executor tells its host: which region crashed and where, or that it called exit.
#pragma once

#include "executor/endpoint.hpp"
#include "executor/images.hpp"

namespace offpath::executor {

// For the whole process, once.
void install_last_words(Endpoint& endpoint, const Images& images);
// Signal handlers of this thread get a stack of their own: the region's may be what overflowed.
void prepare_thread();
// The region that this thread is in from now on; 0: none.
void set_current_region(uint64_t entry);

}  // namespace offpath::executor
