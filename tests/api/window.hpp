// SPDX-License-Identifier: BSD-3-Clause
// A member's session, team and window, and short names for one-sided operations. For forked processes.
#pragma once

#include "job.hpp"

namespace offpath::testing {

inline offpath_window_t* open_window(offpath_team_t* team, uint64_t id, void* base, uint64_t bytes,
                                     uint32_t flags = 0) {
  const offpath_window_params_t params{sizeof(params), flags, id, base, bytes};
  offpath_window_t* window = nullptr;
  offpath_error_t error{};
  const offpath_status_t status = offpath_window_create(team, &params, &window, &error);
  if (status != OFFPATH_OK) fail_process(__FILE__, __LINE__, "window: " + name_of(status) + ": " + error.text);
  return window;
}

inline offpath_block_t block(const void* address, uint64_t bytes, uint32_t layout = 0) {
  return {0, 0, address, bytes, layout};
}

inline offpath_remote_t remote_of(offpath_remote_kind_t kind, uint32_t target, uint64_t offset, uint64_t bytes) {
  offpath_remote_t out{};
  out.struct_bytes = sizeof(out);
  out.kind = kind;
  out.target = target;
  out.target_offset = offset;
  out.target_bytes = bytes;
  return out;
}
inline offpath_remote_t put_of(uint32_t target, uint64_t offset, const void* from, uint64_t bytes) {
  offpath_remote_t out = remote_of(OFFPATH_PUT, target, offset, bytes);
  out.send = block(from, bytes);
  return out;
}
inline offpath_remote_t get_of(uint32_t target, uint64_t offset, void* to, uint64_t bytes) {
  offpath_remote_t out = remote_of(OFFPATH_GET, target, offset, bytes);
  out.result = block(to, bytes);
  return out;
}
// Of 64-bit unsigned integers.
inline offpath_remote_t accumulate_of(uint32_t target, uint64_t offset, const void* from, uint64_t bytes,
                                      offpath_operator_t op = OFFPATH_OP_SUM) {
  offpath_remote_t out = remote_of(OFFPATH_ACCUMULATE, target, offset, bytes);
  out.op = op;
  out.element = OFFPATH_ELEMENT_U64;
  out.send = block(from, bytes);
  return out;
}
inline offpath_remote_t fetch_of(uint32_t target, uint64_t offset, const void* from, void* to, uint64_t bytes,
                                 offpath_operator_t op = OFFPATH_OP_SUM) {
  offpath_remote_t out = accumulate_of(target, offset, from, bytes, op);
  out.kind = OFFPATH_GET_ACCUMULATE;
  out.result = block(to, bytes);
  return out;
}

inline void post(offpath_window_t* window, const offpath_remote_t& remote) {
  REQUIRE_STATUS(offpath_remote(window, &remote, nullptr), OFFPATH_OK);
}
inline void post(offpath_window_t* window, offpath_remote_kind_t kind, uint32_t target) {
  post(window, remote_of(kind, target, 0, 0));
}
inline void flush(offpath_window_t* window) { REQUIRE_STATUS(offpath_window_flush(window, kLongNs), OFFPATH_OK); }

// Posts, waits and frees.
inline offpath_status_t run(offpath_window_t* window, const offpath_remote_t& remote) {
  offpath_op_t* op = nullptr;
  const offpath_status_t posted = offpath_remote(window, &remote, &op);
  if (posted != OFFPATH_OK) return posted;
  return finish(op);
}

}  // namespace offpath::testing
