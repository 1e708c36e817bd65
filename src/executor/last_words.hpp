// SPDX-License-Identifier: BSD-3-Clause
// What a dying executor says, once: where it crashed, or that it called exit.
#pragma once

#include "executor/endpoint.hpp"
#include "executor/images.hpp"

namespace offpath::executor {

// For the whole process, once. `crashed` is called in a signal handler, with the address that was meant and that of the instruction.
void leave_last_words(void (*crashed)(int signal, uint64_t address, uint64_t instruction), void (*exits)(int status));
// This process was forked from one that leaves last words: it is no executor, and says none. A load.
bool is_forked_child();
// To the host, and of which region.
void leave_words_to_host(Endpoint& endpoint, const Images& images);
// Signal handlers of this thread get a stack of their own: the region's may be what overflowed.
void prepare_thread();
// The region that this thread is in from now on; 0: none.
void set_current_region(uint64_t entry);

}  // namespace offpath::executor
