/* SPDX-License-Identifier: BSD-3-Clause
 * Persistent collectives by one name: Open MPI 4 calls them MPIX_ (cmake/MpiFunctions.cmake asks). */
#ifndef OFFPATH_TESTS_PERSISTENT_NAMES_H
#define OFFPATH_TESTS_PERSISTENT_NAMES_H

#include <mpi.h>

#if defined(OPEN_MPI) && !defined(OFFPATH_MPI_HAS_PERSISTENT)
#include <mpi-ext.h>
#define INIT_OF(name) MPIX_##name##_init
#else
#define INIT_OF(name) MPI_##name##_init
#endif

#endif
