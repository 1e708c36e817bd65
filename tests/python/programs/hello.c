/* Says who and where each rank is, and exchanges data with all others: one line per rank, printed by rank 0.
 *   rank size host cores sum-of-all-ranks value-of-OFFPATH_TEST_VALUE
 * hello status: every rank ends with that status. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 256 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  char host[64] = "", cores[64] = "", line[LINE] = "";
  gethostname(host, sizeof host - 1);
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  for (int core = 0; core < 64; ++core)
    if (CPU_ISSET(core, &set) && strlen(cores) < sizeof cores - 4)
      sprintf(cores + strlen(cores), "%s%d", cores[0] ? "," : "", core);

  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const char* value = getenv("OFFPATH_TEST_VALUE");
  snprintf(line, sizeof line, "%d %d %s %s %d %s", rank, size, host, cores, sum, value ? value : "-");

  char* all = malloc((size_t)size * LINE);
  MPI_Gather(line, LINE, MPI_CHAR, all, LINE, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (rank == 0)
    for (int i = 0; i < size; ++i) puts(all + (size_t)i * LINE);
  free(all);
  MPI_Finalize();
  return argc > 1 ? atoi(argv[1]) : 0;
}
