# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's arrays, kept, grown, sliced and dropped, all to all by MPI_Ialltoall, as Python's MPI modules do it.
Prints one line of rank 0; the exit status says whether all was right."""
import ctypes
import os
import subprocess
import sys

import numpy

library = ctypes.CDLL(sys.argv[1])
mpi = ctypes.CDLL(None)  # where the preloaded library is found
if not hasattr(mpi, "MPI_Init"):
    mpi = library
try:  # symbols of Open MPI, numbers of MPICH
    world, byte = (
        ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(library, name)))
        for name in ("ompi_mpi_comm_world", "ompi_mpi_byte")
    )
    new_request, no_status, no_info = ctypes.c_void_p, ctypes.c_void_p(None), ctypes.c_void_p(
        ctypes.addressof(ctypes.c_char.in_dll(library, "ompi_mpi_info_null"))
    )
except ValueError:
    world, byte, no_info = ctypes.c_int(0x44000000), ctypes.c_int(0x4C00010D), ctypes.c_int(0x1C000000)
    new_request, no_status = ctypes.c_int, ctypes.c_void_p(1)


def number(function):
    value = ctypes.c_int()
    function(world, ctypes.byref(value))
    return value.value


assert mpi.MPI_Init(None, None) == 0
rank, size = number(library.MPI_Comm_rank), number(library.MPI_Comm_size)
right = True


def exchange(send, recv, step):
    """Rows of the arrays belong to peers. A thread may read `send` meanwhile: NumPy does."""
    global right
    for peer in range(size):
        send[peer] = numpy.arange(send.shape[1]) * 3 + rank * 1000 + peer * 7 + step
    request, count = new_request(), ctypes.c_int(send.shape[1] * send.itemsize)
    place = [ctypes.c_void_p(array.ctypes.data) for array in (send, recv)]
    assert mpi.MPI_Ialltoall(place[0], count, byte, place[1], count, byte, world, ctypes.byref(request)) == 0
    total = send.sum()
    assert mpi.MPI_Wait(ctypes.byref(request), no_status) == 0
    right &= total == send.sum()
    for peer in range(size):
        right &= bool((recv[peer] == numpy.arange(recv.shape[1]) * 3 + peer * 1000 + rank * 7 + step).all())


def of_mpi(columns):
    """As MPI.Alloc_mem of Python's modules."""
    place, elements = ctypes.c_void_p(), size * columns
    assert mpi.MPI_Alloc_mem(ctypes.c_ssize_t(elements * 8), no_info, ctypes.byref(place)) == 0
    buffer = (ctypes.c_char * (elements * 8)).from_address(place.value)
    return place, numpy.frombuffer(buffer, dtype=numpy.int64).reshape(size, columns)


COLUMNS = 24 * 1024
kept, other = (numpy.empty((size, COLUMNS), dtype=numpy.int64) for _ in range(2))
for step in range(12):
    exchange(kept, other, step)
    exchange(other, kept, step + 100)
    passing = numpy.zeros((size, COLUMNS + step * 512), dtype=numpy.int64)
    right &= not passing.any()
    grown = passing.copy()
    exchange(passing, grown, step + 200)
    exchange(passing, grown, step + 300)
    exchange(passing, grown, step + 350)
    grown.resize((size + 1, grown.shape[1]), refcheck=False)  # realloc
    right &= not grown[size].any()
    exchange(grown[1:], passing, step + 400)
    del passing, grown
    if step % 6 == 0:
        subprocess.run(["true"], check=True)
    if step == 7:
        child = os.fork()
        if child == 0:
            same = bool((kept[0] == numpy.arange(COLUMNS) * 3 + rank * 7 + 107).all())
            kept[:] = -1
            os._exit(0 if same else 1)
        right &= os.waitpid(child, 0)[1] == 0 and kept[0, 1] == 3 + rank * 7 + 107
place, lent = of_mpi(COLUMNS)
for step in range(4):
    exchange(lent, kept, step + 500)
    exchange(kept, lent, step + 600)
del lent
assert mpi.MPI_Free_mem(place) == 0
assert mpi.MPI_Finalize() == 0
if rank == 0:
    print("arrays:", "ok" if right else "WRONG")
sys.exit(0 if right else 1)
