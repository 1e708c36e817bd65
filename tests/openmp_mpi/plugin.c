/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bears the name of a target plugin, which is all that MPI_Init looks for. */
int offpath_stand_in_plugin;
