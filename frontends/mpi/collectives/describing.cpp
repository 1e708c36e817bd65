// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/collectives/describing.hpp"

#include "mpi/job/job.hpp"
#include "mpi/recording/decision.hpp"

namespace offpath::mpi {
namespace {

// Pairwise: whether any block may go to the service.
bool offloads_blocks(const Call& call, const Lane& lane) {
  switch (lane.adapter().preference()) {
    case Preference::host:
      return false;
    case Preference::dpu:
      return true;
    default:
      return job.policy().offloads(call.collective->id, lane.nodes());
  }
}

bool ask_policy(Call& call, const Lane& lane, uint64_t bytes) {
  recording::decision.why = "policy";
  if (call.pairwise) return offloads_blocks(call, lane);
  call.asked_bytes = bytes;
  if (call.use == Use::many) {
    call.algorithm = job.policy().choose(call.collective->id, bytes, lane.nodes()).algorithm;
    return lane.adapter().may_offload(call.collective->id, bytes);
  }
  const Ask ask = lane.adapter().ask(call.collective->id, bytes);
  const std::optional<Answer> answer = lane.decide(ask);
  recording::decision.why = answer ? why_name(answer->why) : "agreement";
  if (!answer) {
    call.open = ask;
    return true;
  }
  call.algorithm = answer->choice.algorithm;
  call.on_council = answer->choice.path == policy::Path::host && lane.adapter().adapts(call.collective->id, bytes);
  return answer->choice.path == policy::Path::dpu;
}

}  // namespace

bool choose(Call& call, const Lane& lane, uint64_t bytes) {
  call.by_policy = !ask_policy(call, lane, bytes);
  return !call.by_policy;
}

void divide(Call& call, const Lane& lane) {
  if (!call.pairwise) return;
  const bool never_host = lane.adapter().preference() == Preference::dpu;
  const auto share_of = [&](uint64_t bytes) {
    const policy::Choice choice = job.policy().choose(call.collective->id, bytes, lane.nodes());
    if (choice.path == policy::Path::host && !never_host) return Share::host;
    call.algorithm = choice.algorithm;
    return Share::service;
  };
  call.send.divide(share_of);
  call.recv.divide(share_of);
}

}  // namespace offpath::mpi
