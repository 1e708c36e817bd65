# SPDX-License-Identifier: BSD-3-Clause
"""MPI brought in by dlopen with RTLD_LOCAL, as Python's extension modules do; called through the library's own handle
and through the global scope (where the preloaded library is found), or there from MPI_Init on ("late")."""
import ctypes
import glob
import sys

# Other libraries that come first.
others = [ctypes.CDLL(path) for folder in sys.argv[3:] for path in glob.glob(f"{folder}/*.so")]
library = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_LOCAL)
scope = library if sys.argv[2] == "handle" else ctypes.CDLL(None)
if not hasattr(scope, "MPI_Init"):
    scope = library  # native run: nobody exports it globally
assert (library if sys.argv[2] == "late" else scope).MPI_Init(None, None) == 0
# Names of the predefined communicator: a symbol of Open MPI, a number of MPICH.
try:
    world = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(library, "ompi_mpi_comm_world")))
    null = ctypes.c_void_p
except ValueError:
    world = ctypes.c_int(0x44000000)
    null = ctypes.c_int
copy = null()
assert scope.MPI_Comm_dup(world, ctypes.byref(copy)) == 0
size = ctypes.c_int()
library.MPI_Comm_size(copy, ctypes.byref(size))
rank = ctypes.c_int()
library.MPI_Comm_rank(copy, ctypes.byref(rank))
assert scope.MPI_Comm_free(ctypes.byref(copy)) == 0
assert scope.MPI_Finalize() == 0
if rank.value == 0:
    print("ranks:", size.value)
