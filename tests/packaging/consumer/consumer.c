/* SPDX-License-Identifier: BSD-3-Clause */
/* A stranger's program: says which API it was built for and attaches to the service that was installed with it. */
#include <offpath/offpath.h>

#include <stdio.h>
#include <string.h>

int main(void) {
  offpath_attach_params_t params;
  offpath_session_t* session = NULL;
  offpath_error_t error;
  offpath_status_t status;
  memset(&params, 0, sizeof(params));
  params.struct_bytes = sizeof(params);
  memcpy(params.job_token, "not secret, only for this test..", sizeof(params.job_token));
  status = offpath_session_attach(&params, &session, &error);
  printf("API version %d, attach: %s%s%s\n", OFFPATH_API_VERSION, offpath_status_string(status),
         status == OFFPATH_OK ? "" : ": ", status == OFFPATH_OK ? "" : error.text);
  offpath_session_detach(session);
  return status == OFFPATH_OK ? 0 : 1;
}
