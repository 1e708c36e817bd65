// SPDX-License-Identifier: BSD-3-Clause
// Files of tests, and transfers that are waited for.
#pragma once

#include "job.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

namespace offpath::testing {

struct OpenFile {
  explicit OpenFile(offpath_session_t* session, int flags = 0) : descriptor(memfd_create("file", MFD_CLOEXEC)) {
    if (flags != 0) fcntl(descriptor, F_SETFL, flags);
    offpath_error_t error{};
    REQUIRE_STATUS(offpath_file_open(session, descriptor, &file, &error), OFFPATH_OK);
  }
  ~OpenFile() {
    offpath_file_close(file);
    close(descriptor);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int descriptor;
  offpath_file_t* file = nullptr;
};

inline offpath_file_transfer_t transfer_of(const void* memory, uint64_t bytes, uint64_t offset) {
  offpath_file_transfer_t out{};
  out.struct_bytes = sizeof(out);
  out.memory = {0, 0, memory, bytes, 0};
  out.offset_bytes = offset;
  return out;
}

struct End {
  offpath_status_t status;
  offpath_file_result_t result;
};

inline End await(offpath_op_t* op) {
  End end{};
  end.result.struct_bytes = sizeof(end.result);
  end.status = offpath_op_wait(op, kLongNs);
  REQUIRE_STATUS(offpath_file_result(op, &end.result), OFFPATH_OK);
  offpath_op_free(op);
  return end;
}

inline End write(offpath_file_t* file, const offpath_file_transfer_t& transfer) {
  offpath_op_t* op = nullptr;
  REQUIRE_STATUS(offpath_file_write(file, &transfer, &op), OFFPATH_OK);
  return await(op);
}

inline End read(offpath_file_t* file, const offpath_file_transfer_t& transfer) {
  offpath_op_t* op = nullptr;
  REQUIRE_STATUS(offpath_file_read(file, &transfer, &op), OFFPATH_OK);
  return await(op);
}

inline std::vector<uint8_t> contents(int descriptor) {
  struct stat about {};
  REQUIRE(fstat(descriptor, &about) == 0);
  std::vector<uint8_t> bytes(static_cast<size_t>(about.st_size));
  REQUIRE(pread(descriptor, bytes.data(), bytes.size(), 0) == about.st_size);
  return bytes;
}

}  // namespace offpath::testing
