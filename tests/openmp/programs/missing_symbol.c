// SPDX-License-Identifier: BSD-3-Clause
// Its device code calls a function that the host has and the device has not.
int not_on_the_device(void);

#pragma omp begin declare target
extern int not_on_the_device(void);
#pragma omp end declare target

int main(void) {
  int value = 0;
#pragma omp target map(tofrom : value)
  value = not_on_the_device();
  return value;
}
