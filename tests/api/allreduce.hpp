// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <offpath/offpath.h>

namespace offpath::testing {

// Of doubles; `send` and `recv` have one block each.
inline offpath_collective_t allreduce_of(const offpath_block_t& send, const offpath_block_t& recv) {
  offpath_collective_t out{};
  out.struct_bytes = sizeof(out);
  out.kind = OFFPATH_ALLREDUCE;
  out.op = OFFPATH_OP_SUM;
  out.element = OFFPATH_ELEMENT_F64;
  out.send = &send;
  out.recv = &recv;
  out.send_count = out.recv_count = 1;
  return out;
}

}  // namespace offpath::testing
