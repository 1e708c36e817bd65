// SPDX-License-Identifier: BSD-3-Clause
int not_on_the_device(void) { return 0; }
