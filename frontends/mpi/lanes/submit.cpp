// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lanes/submit.hpp"

#include "mpi/job/counters.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/native.hpp"

namespace offpath::mpi {

int submit(Lane& lane, const std::shared_ptr<const Call>& call, const std::optional<Ask>& open,
           const Arguments& native_arguments, MPI_Request* request) {
  int code = MPI_SUCCESS;
  Lane::Route route = open ? Lane::Route::lane : offloader.route(lane, *call);
  if (route == Lane::Route::lane) {
    auto operation = std::make_unique<PostedCall>(call);
    operation->open = open;
    {
      const Inside inside;
      code = operation->prepare(lane.shadow());
    }
    if (code != MPI_SUCCESS) return code;
    route = offloader.submit(lane, std::move(operation), request, &code);
  }
  recording::Decision& decision = recording::decision;
  decision.offloaded = route == Lane::Route::lane && call->uses_service() && !open;
  if (route != Lane::Route::lane) decision.why = "lost";
  if (decision.offloaded) decision.algorithm = policy::algorithm_name(call->algorithm);
  if (route != Lane::Route::lane || !call->uses_service()) counters.count_native(call->collective->id);
  if (route == Lane::Route::lane) return MPI_SUCCESS;
  if (route == Lane::Route::shadow) return call->collective->issue(native_arguments, lane.shadow(), request);
  return code == MPI_SUCCESS ? lane.failure_code() : code;
}

}  // namespace offpath::mpi
