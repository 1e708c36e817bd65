// SPDX-License-Identifier: BSD-3-Clause
// The functions that look at requests and complete none.
#include "mpi/requests/handling.hpp"
#include "mpi/requests/own_requests.hpp"

#include <algorithm>
#include <vector>

namespace offpath::mpi {
namespace {

// Ours among requests that are looked at alone.
class Looked {
 public:
  Looked(int count, const MPI_Request* requests)
      : requests_(requests, requests + std::max(count, 0)), own_(count, requests_.data()) {
    move_ours();
  }
  OwnRequests* operator->() { return &own_; }
  // That of the request at `index` in statuses[place], if the application wants statuses.
  void show(int index, MPI_Status* statuses, int place) {
    const bool wanted = statuses != MPI_STATUSES_IGNORE && statuses != MPI_STATUS_IGNORE;
    own_.show(index, wanted ? &statuses[place] : MPI_STATUS_IGNORE);
  }

 private:
  std::vector<MPI_Request> requests_;
  OwnRequests own_;
};

int get_status(MPI_Request request, int* flag, MPI_Status* status) {
  OwnRequests own(1, &request);
  move_ours();
  *flag = 0;
  if (own.hide() != 0) return MPI_SUCCESS;
  const int code = native.Request_get_status(*own.natives(), flag, status);
  if (code == MPI_SUCCESS && *flag != 0) own.show(0, status);
  return code;
}

int get_status_all(int count, const MPI_Request* requests, int* flag, MPI_Status* statuses) {
  Looked own(count, requests);
  *flag = 0;
  if (own->hide() != 0) return MPI_SUCCESS;
  const int code = native.Request_get_status_all(count, own->natives(), flag, statuses);
  for (int i = 0; code == MPI_SUCCESS && *flag != 0 && i < count; ++i) own.show(i, statuses, i);
  return code;
}

int get_status_any(int count, const MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  Looked own(count, requests);
  const int hidden = own->hide();
  const int code = native.Request_get_status_any(count, own->natives(), index, flag, status);
  if (code != MPI_SUCCESS || *flag == 0) return code;
  if (*index != MPI_UNDEFINED)
    own.show(*index, status, 0);
  else if (hidden > 0)
    *flag = 0;
  return code;
}

int get_status_some(int count, const MPI_Request* requests, int* out_count, int* indices, MPI_Status* statuses) {
  Looked own(count, requests);
  const int hidden = own->hide();
  const int code = native.Request_get_status_some(count, own->natives(), out_count, indices, statuses);
  if (code != MPI_SUCCESS) return code;
  if (*out_count == MPI_UNDEFINED && hidden > 0) *out_count = 0;
  for (int i = 0; i < *out_count && *out_count != MPI_UNDEFINED; ++i) own.show(indices[i], statuses, i);
  return code;
}

}  // namespace

namespace handlers {

OFFPATH_WAITS(Request_get_status, get_status)
OFFPATH_WAITS(Request_get_status_all, get_status_all)
OFFPATH_WAITS(Request_get_status_any, get_status_any)
OFFPATH_WAITS(Request_get_status_some, get_status_some)

}  // namespace handlers
}  // namespace offpath::mpi
