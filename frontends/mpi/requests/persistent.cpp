// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/requests/persistent.hpp"

#include "mpi/job/counters.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/lanes/submit.hpp"

#include <exception>

namespace offpath::mpi {

Persistent::~Persistent() {
  lane_.close();
  offloader.retire();
}

// Not Inside.
int Persistent::start(MPI_Request*) {
  int code = MPI_ERR_REQUEST;  // started already
  if (current == MPI_REQUEST_NULL) {
    try {
      code = issue();
    } catch (const std::exception&) {
      code = MPI_ERR_NO_MEM;
    }
  }
  return code == MPI_SUCCESS ? code : lane_.raise(code);
}

int Persistent::issue() {
  recording::decision.why = "policy";
  std::optional<Ask> open;
  if (!call_->pairwise) {
    const Adapter& adapter = lane_.adapter();
    const Ask ask = adapter.ask(call_->collective->id, call_->asked_bytes);
    const std::optional<Answer> answer = lane_.decide(ask);
    recording::decision.why = answer ? why_name(answer->why) : "agreement";
    if (!answer) open = ask;
    if (answer && answer->choice.path == policy::Path::host) {
      const Inside inside;
      counters.count_native(call_->collective->id);
      const bool on_council = adapter.adapts(call_->collective->id, call_->asked_bytes);
      return call_->collective->issue(call_->arguments, on_council ? adapter.council() : lane_.shadow(), &current);
    }
  }
  return submit(lane_, call_, open, call_->arguments, &current);
}

}  // namespace offpath::mpi
