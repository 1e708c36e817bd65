// SPDX-License-Identifier: BSD-3-Clause
// Memory that the application asks MPI for (MPI_Alloc_mem, MPI_Win_allocate) comes from the session, where the service uses
// it in place. Where there is none, or too little, or it is asked for of a special kind, from the native library.
//
// Threads: any.
#pragma once

#include <mpi.h>

namespace offpath::mpi {

// nullptr: the native library is to give it.
void* lend(MPI_Aint bytes, MPI_Info info);
// False: it is the native library's.
bool take_back(void* memory);

}  // namespace offpath::mpi
