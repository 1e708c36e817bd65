// SPDX-License-Identifier: BSD-3-Clause
// The algorithms; each has a file of its own. They add this member's steps and exports to the expansion's graph.
// Precondition: check() passed. Reductions are only called for teams of several members.
#pragma once

#include "ops/collectives/segments.hpp"

namespace offpath::ops {

void expand_exchange(const Expansion& expansion);
void expand_barrier(const Expansion& expansion);
void expand_bcast_binomial(const Expansion& expansion);
void expand_bcast_chain(const Expansion& expansion);
void expand_bcast_scatter_allgather(const Expansion& expansion);
void expand_allgather_direct(const Expansion& expansion);
void expand_allgather_ring(const Expansion& expansion);
void expand_reduce_binomial(const Expansion& expansion);
void expand_reduce_rabenseifner(const Expansion& expansion);
void expand_allreduce_doubling(const Expansion& expansion);
void expand_allreduce_ring(const Expansion& expansion);
void expand_allreduce_rabenseifner(const Expansion& expansion);
void expand_reduce_scatter_pairwise(const Expansion& expansion);
void expand_scan_chain(const Expansion& expansion);     // exscan too
void expand_scan_doubling(const Expansion& expansion);  // exscan too

}  // namespace offpath::ops
