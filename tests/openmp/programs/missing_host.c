// SPDX-License-Identifier: BSD-3-Clause
int only_on_the_host(void) { return 0; }
