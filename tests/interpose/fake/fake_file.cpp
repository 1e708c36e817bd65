// SPDX-License-Identifier: BSD-3-Clause
// Files of the fake client: it takes them, and loses every transfer, so that the front end does all of them again.
#include "fake.hpp"

struct offpath_file {
  offpath_session* session;
};

namespace {
offpath_status_t lose(const offpath_file* file, offpath_op** op) {
  *op = fake::op_that_ended(file->session, OFFPATH_ERR_SERVICE_LOST);
  return OFFPATH_OK;
}
}  // namespace

extern "C" {

offpath_status_t offpath_file_open(offpath_session_t* session, int, offpath_file_t** file, offpath_error_t*) {
  *file = new offpath_file{session};
  return OFFPATH_OK;
}
void offpath_file_close(offpath_file_t* file) { delete file; }
offpath_status_t offpath_file_write(offpath_file_t* file, const offpath_file_transfer_t*, offpath_op_t** op) {
  return lose(file, op);
}
offpath_status_t offpath_file_read(offpath_file_t* file, const offpath_file_transfer_t*, offpath_op_t** op) {
  return lose(file, op);
}
offpath_status_t offpath_file_result(offpath_op_t*, offpath_file_result_t*) { return OFFPATH_ERR_STATE; }

}  // extern "C"
