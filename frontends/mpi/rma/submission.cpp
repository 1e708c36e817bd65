// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/rma/submission.hpp"

#include "client/kept.hpp"
#include "mpi/rma/homecoming.hpp"
#include "mpi/recording/service_times.hpp"

namespace offpath::mpi {

Submission::~Submission() {
  for (offpath_op_t* op : ops_) offpath_op_free(op);
}

offpath_status_t Submission::test(Homecoming* homecoming) {
  offpath_status_t status = OFFPATH_OK;
  for (offpath_op_t* op : ops_) {
    offpath_status_t its = offpath_op_test(op);
    if (homecoming != nullptr) its = homecoming->outcome_of(client::sequence_of(op), its);
    if (its == OFFPATH_IN_PROGRESS) return its;
    if (status == OFFPATH_OK) status = its;
  }
  return status;
}

void Submission::end(int error) {
  if (recorded_ != recording::kUnrecorded && !ops_.empty()) recording::record_service(recorded_, ops_, error);
  for (offpath_op_t* op : ops_) offpath_op_free(op);
  ops_.clear();
}

}  // namespace offpath::mpi
