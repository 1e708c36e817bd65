# SPDX-License-Identifier: BSD-3-Clause
"""halo3d natively: the known solution, and the same bits for any number of ranks and any time tiles."""

import re

import pytest
from bench_support import mpirun, program


def bits(mpi, np, *arguments):
    result = mpirun(mpi, np, program("apps", mpi, "halo3d"), "--points", "17", "--variables", "2", *arguments)
    assert result.returncode == 0 and "verified: yes" in result.stdout, result.stdout + result.stderr
    (found,) = re.findall(r"^bits (\w{16})$", result.stdout, re.MULTILINE)
    return found


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_tiles_and_ranks_do_not_change_a_bit(mpi):
    """Sweeps that are no multiple of the tiles; tiles as deep as a rank is; ranks that have neighbours all around."""
    expected = bits(mpi, 1, "--sweeps", "11")
    assert bits(mpi, 1, "--sweeps", "12") != expected
    for np, tiles in ((1, 4), (2, 2), (4, 3), (4, 8), (9, 1), (9, 5)):
        assert bits(mpi, np, "--sweeps", "11", "--tiles", str(tiles)) == expected, (np, tiles)
    assert bits(mpi, 4, "--sweeps", "11", "--tiles", "4", "--blocking") == expected


def test_a_tile_is_no_deeper_than_a_rank():
    result = mpirun("mpich", 4, program("apps", "mpich", "halo3d"), "--points", "17", "--tiles", "9")
    assert result.returncode == 2 and result.stderr.startswith("usage: halo3d") and result.stdout == ""
