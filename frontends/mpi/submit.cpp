// SPDX-License-Identifier: BSD-3-Clause
#include "submit.hpp"

#include "engine.hpp"
#include "native.hpp"

namespace offpath::mpi {

int submit(Team& team, const std::shared_ptr<const Call>& call, const std::optional<Ask>& open,
           const Arguments& native_arguments, MPI_Request* request) {
  int code = MPI_SUCCESS;
  Team::Route route = open ? Team::Route::team : engine.route(team, *call);
  if (route == Team::Route::team) {
    auto operation = std::make_unique<Operation>(call);
    operation->open = open;
    {
      const Inside inside;
      code = operation->prepare(team.shadow());
    }
    if (code != MPI_SUCCESS) return code;
    route = engine.submit(team, std::move(operation), request, &code);
  }
  recording::Decision& decision = recording::decision;
  decision.offloaded = route == Team::Route::team && call->uses_service() && !open;
  if (route != Team::Route::team) decision.why = "lost";
  if (decision.offloaded) decision.algorithm = policy::algorithm_name(call->algorithm);
  if (route != Team::Route::team || !call->uses_service()) engine.count_native(call->collective->id);
  if (route == Team::Route::team) return MPI_SUCCESS;
  if (route == Team::Route::shadow) return call->collective->issue(native_arguments, team.shadow(), request);
  return code == MPI_SUCCESS ? engine.errors().code_for(OFFPATH_ERR_SERVICE_LOST) : code;
}

}  // namespace offpath::mpi
