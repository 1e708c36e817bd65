// SPDX-License-Identifier: BSD-3-Clause
// stdio.h for target regions: the system's own, whose stdin, stdout and stderr are those of the device there.
#pragma omp declare target
#include_next <stdio.h>
#pragma omp end declare target
