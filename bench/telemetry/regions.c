/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a region with a name costs: its begin and its end, alone. Run it natively, under `offpath run` and under
 * `offpath run --trace`. Prints the smallest and the median of the batches, in ns per region, on the first rank. */
#include <offpath/region.h>

#include "batches.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  for (int batch = 0; batch < BATCHES; ++batch) {
    const double begin = MPI_Wtime();
    for (int i = 0; i < CALLS; ++i) {
      offpath_region_begin("region");
      offpath_region_end("region");
    }
    end_batch(batch, begin);
  }
  print_batches();
  MPI_Finalize();
  return 0;
}
