// SPDX-License-Identifier: BSD-3-Clause
// Its region calls a function that is defined for the host alone.
int only_on_the_host(void);

int main(void) {
  int value = 1;
#pragma omp target map(tofrom : value)
  value = only_on_the_host();
  return value;
}
