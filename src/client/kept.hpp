// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations that a loss has ended, or kept from beginning: their window keeps them, and whoever knows another way to
// the target carries them out there (docs/design/0044-recovery.md, Windows). For front ends that are linked with the
// client; not part of the C API.
//
// A window that keeps operations never says of one that a loss has ended it: it counts as completed, a flush is well, and the
// operation is taken from here. What the service never got is kept as well. So `completed` alone does not say that the memory
// of an operation is free, or that what it fetched is there: only with may_have_kept() it does.
//
// Threads: any.
#pragma once

#include <offpath/offpath.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace offpath::client {

// Of an operation that a loss has ended, or kept from beginning.
constexpr bool is_loss(offpath_status_t status) {
  return status == OFFPATH_ERR_SERVICE_LOST || status == OFFPATH_ERR_PEER_LOST || status == OFFPATH_ERR_NOT_STARTED;
}

struct Kept {
  uint64_t sequence = 0;        // in its window: the number of operations issued before it
  bool may_be_done = false;     // wholly or in part; false: the service has never got it
  std::vector<uint8_t> record;  // remote::decode_origin; its memory belongs to the operation until it is carried out
};

// For offpath_window_params_t::flags: the window keeps them. 0: this client cannot (a stand-in of tests), and all is as ever.
uint32_t keeping_flag();
// False: no operation of it was ended by a loss so far, and what counts as completed is done. A load or two.
bool may_have_kept(const offpath_window_t* window);
// Those that are over at the service; in the order of posting, each once. Where the service is lost all of them are. May
// throw bad_alloc.
std::vector<Kept> take_kept(offpath_window_t* window);
// Has the service let go of this member's part: *op ends once nothing of the service works on it any more, and its journal
// is final. All that asks for it later is refused as by a lost member. What is posted on the window from now on is kept at
// once. OFFPATH_ERR_SERVICE_LOST: there is no service, so it has let go already (*op is nullptr).
offpath_status_t give_up(offpath_window_t* window, offpath_op_t** op);
// Of an operation of the window that was posted with a handle, as Kept.
uint64_t sequence_of(const offpath_op_t* op);
// What the service has written down of this member's part (remote/journal.hpp). Empty: nothing, as there was no room, or
// it is not the service of this machine. Lives as long as the window.
std::span<uint8_t> journal_of(const offpath_window_t* window);

}  // namespace offpath::client
