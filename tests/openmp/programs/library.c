// SPDX-License-Identifier: BSD-3-Clause
// Calls a shared library on the host and, its other build, in a region.
#pragma omp declare target
void log_line(const char* text);
#pragma omp end declare target

int main(void) {
  log_line("on the host");
#pragma omp target
  log_line("in the region");
  return 0;
}
