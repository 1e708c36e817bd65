// SPDX-License-Identifier: BSD-3-Clause
// OpenMP inside regions: parallel, for, reductions, sections, tasks, critical, teams.
#include "check.h"

enum { COUNT = 100000 };

int main(void) {
  check_place();
  int threads = 0, greetings = 0;
#pragma omp target parallel map(tofrom : threads, greetings) num_threads(3)
  {
#pragma omp critical
    greetings++;
#pragma omp single
    threads = omp_get_num_threads();
  }
  CHECK(threads == 3 && greetings == 3);

  static double a[COUNT], b[COUNT];
  for (int i = 0; i < COUNT; i++) {
    a[i] = i;
  }
  double sum = 0;
#pragma omp target parallel for map(to : a) map(from : b) map(tofrom : sum) reduction(+ : sum)
  for (int i = 0; i < COUNT; i++) {
    b[i] = 2 * a[i];
    sum += b[i];
  }
  CHECK(sum == (double)COUNT * (COUNT - 1) && b[COUNT - 1] == 2 * (COUNT - 1));

  long teams_sum = 0;
#pragma omp target teams distribute parallel for map(tofrom : teams_sum) reduction(+ : teams_sum) num_teams(2)
  for (int i = 0; i < COUNT; i++) {
    teams_sum += i;
  }
  CHECK(teams_sum == (long)COUNT * (COUNT - 1) / 2);

  int leaves = 0;
#pragma omp target map(tofrom : leaves)
#pragma omp parallel num_threads(2)
#pragma omp single
  for (int i = 0; i < 10; i++) {
#pragma omp task shared(leaves)
    {
#pragma omp atomic
      leaves++;
    }
  }
  CHECK(leaves == 10);

  int collapsed[8][8];
#pragma omp target parallel for collapse(2) map(from : collapsed)
  for (int i = 0; i < 8; i++) {
    for (int j = 0; j < 8; j++) {
      collapsed[i][j] = 8 * i + j;
    }
  }
  CHECK(collapsed[7][7] == 63 && collapsed[3][4] == 28);
  return check_status();
}
