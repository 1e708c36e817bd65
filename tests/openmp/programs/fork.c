// SPDX-License-Identifier: BSD-3-Clause
// fork before the first region ("early") or after it ("late"), and both processes use the device. The parent's status is
// that of its checks, whatever becomes of the child.
#include "check.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "late") == 0) {
    check_place();
  }
  const pid_t child = fork();
  const int factor = child == 0 ? 3 : 2;
  for (int i = 0; i < 500; i++) {
    int value = 0;
#pragma omp target map(to : i, factor) map(from : value)
    value = factor * i;
    CHECK(value == factor * i);
  }
  if (child == 0) {
    return check_status();
  }
  int status = -1;
  waitpid(child, &status, 0);
  printf("the child ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  check_place();
  return check_status();
}
