/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a posting call and its wait cost a rank, with nobody else involved: an MPI_Iallreduce of 8 bytes on
 * MPI_COMM_SELF. Run it natively, under `offpath run` and under `offpath run --trace`. Prints the smallest and the
 * median of the batches, in ns per pair of calls, on the first rank. */
#include "batches.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  for (int batch = 0; batch < BATCHES; ++batch) {
    const double begin = MPI_Wtime();
    for (int i = 0; i < CALLS; ++i) {
      double in = i, out;
      MPI_Request request;
      MPI_Iallreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    end_batch(batch, begin);
  }
  print_batches();
  MPI_Finalize();
  return 0;
}
