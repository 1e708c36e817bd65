// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/network.hpp"

#include "base/clock.hpp"
#include "mpi/native/native.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace offpath::mpi {
namespace {

// Longer than what sockets and switches take at once.
constexpr size_t kBytes = 512 << 10;
constexpr int kRounds = 2;  // the first one connects, and takes MPICH twice as long
constexpr int kTag = 1;

double measure(int next, int previous, MPI_Comm comm) {
  std::vector<std::byte> out(kBytes), in(kBytes);
  constexpr auto count = static_cast<int>(kBytes);
  double rate = 0;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t begin = base::clock_ns();
    const int code = native.Sendrecv(out.data(), count, MPI_BYTE, next, kTag, in.data(), count, MPI_BYTE, previous,
                                     kTag, comm, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return 0;
    rate = std::max(rate,
                    static_cast<double>(kBytes) / static_cast<double>(std::max<uint64_t>(base::clock_ns() - begin, 1)));
  }
  return rate;
}

}  // namespace

double measure_network(const attach::Nodes& nodes, MPI_Comm comm) {
  int rank = 0, size = 0;
  native.Comm_rank(comm, &rank);
  native.Comm_size(comm, &size);
  std::vector<int> first(nodes.count(), size);  // by node
  for (int each = size - 1; each >= 0; --each) first[nodes.of(each)] = each;
  const uint32_t count = nodes.count(), own = nodes.of(rank);
  double rate = 0;
  if (count > 1 && nodes.leads(rank)) rate = measure(first[(own + 1) % count], first[(own + count - 1) % count], comm);
  double fastest = 0;
  return native.Allreduce(&rate, &fastest, 1, MPI_DOUBLE, MPI_MAX, comm) == MPI_SUCCESS ? fastest : 0;
}

}  // namespace offpath::mpi
