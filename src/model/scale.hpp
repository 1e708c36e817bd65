// SPDX-License-Identifier: BSD-3-Clause
// Collectives on thousands of nodes in closed form: what the busiest node's wire and worker have to do, counted in the
// graphs of a few of its members, and the chain of hops that nothing shortens. Checked against the simulation where
// that is still possible. Source: LogGP (Alexandrov et al., SPAA 1995), pipelines as in Thakur, Rabenseifner, Gropp
// (IJHPCA 2005).
#pragma once

#include "model/operation.hpp"

namespace offpath::model {

struct Price {
  double total_ns = 0;
  double wire_ns = 0;   // of the busiest link
  double agent_ns = 0;  // processor time of the busiest service, or rank
  double hops_ns = 0;   // of the longest chain of messages
  uint32_t hops = 0;
  bool hides = true;  // behind computation; native: only what is sent at once
};

// All members of `nodes` x `ppn` ranks post the operation at once. operation.members is not looked at.
base::Result<Price> price(const Machine& machine, const Operation& operation, uint32_t nodes, uint32_t ppn);

}  // namespace offpath::model
