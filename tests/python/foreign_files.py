# SPDX-License-Identifier: BSD-3-Clause
"""Other people's tests of MPI's files for test_foreign_files.py: what there is to run, and what came of it.

tools/setup --foreign builds them; docs/compatibility.md lists them.
"""

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance_support import NATIVE
from foreign_support import set_up
from offpath.base.processes import Completed

# The libraries' ways to files: Open MPI has two.
WAYS = {
    "ompio": ("openmpi", {"OMPI_MCA_io": "ompio"}),
    "romio321": ("openmpi", {"OMPI_MCA_io": "romio321"}),
    "mpich": ("mpich", {}),
}
POLICIES = {
    "files": {"OFFPATH_POLICY": "write:dpu,read:dpu"},
    "all": {
        "OFFPATH_POLICY": "*:dpu,send:4K-inf:dpu,window:dpu,write:dpu,read:dpu",
        "OFFPATH_MPI_BLOCKING": "all",
    },
}
# ROMIO's, as its own script starts them, but for benchmarks: how many ranks, the program, what it is told.
ROMIO = """
4 simple -fname FILE
4 psimple -fname FILE
4 async -fname FILE
4 async-multiple -fname FILE
4 atomicity -fname FILE
4 coll_test -fname FILE
4 excl -fname FILE
4 file_info -fname FILE
2 i_noncontig -fname FILE
2 noncontig -fname FILE
2 noncontig_coll -fname FILE
4 noncontig_coll2 -fname FILE
4 aggregation1 -h -f FILE
4 aggregation2 FILE
4 hindexed FILE
4 ordered_fp -fname FILE
4 shared_fp -fname FILE
4 split_coll -fname FILE
1 error -fname FILE
1 status -fname FILE
2 types_with_zeros FILE
4 darray_read FILE
4 misc -fname FILE
4 creat_excl -fname FILE
4 fmisc -fname FILE
4 fcoll_test -fname FILE
4 pfcoll_test -fname FILE
"""
# They take no file's name: each has some in its folder.
HDF5 = """
4 t_mpi
4 testphdf5
"""
# What the service may have: MPI_File_iwrite and split collectives, but not those of shared pointers.
OFFLOADABLE = re.compile(r"\bp?mpi_file_(i(read|write)(_at)?(_all)?|(read|write)(_at)?_all_begin)_*$", re.I | re.M)
# Programs that call them with views of short stretches only.
STAY_NATIVE = frozenset("split_coll io/i_coll_test io/i_darray_read io/i_hindexed io/i_types_with_zeros".split())


@dataclass(frozen=True)
class Program:
    name: str
    ranks: int
    argv: Sequence[str]

    def offloads(self) -> bool:
        command = ["nm", "-D", "--undefined-only", self.argv[0]]
        symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return self.ranks > 1 and self.name not in STAY_NATIVE and OFFLOADABLE.search(symbols) is not None

    def within(self, folder: Path) -> list[str]:
        """Started in a folder of its own."""
        (folder / self.name).mkdir(parents=True)
        return ["sh", "-c", 'cd "$0" && exec "$@"', str(folder / self.name), *self.argv]


def rows(text: str, home: Path) -> Iterator[Program]:
    for line in text.split("\n"):
        if words := line.split():
            yield Program(words[1], int(words[0]), [str(home / words[1]), *words[2:]])


def mpich_tests(mpi: str) -> list[Program]:
    """As their lists say, but for those that need 6.5 GiB."""
    home, found = set_up() / "files" / mpi / "mpich", []
    for folder in ("io", "f77/io", "f90/io"):
        for line in (home / folder / "testlist").read_text().splitlines():
            name, ranks, *options = shlex.split(line, comments=True) or ("", "")
            arguments = [option[4:] for option in options if option.startswith("arg=")]
            large = any(option.startswith("mem=") for option in options)
            if name and not large and (home / folder / name).exists():
                found.append(Program(f"{folder}/{name}", int(ranks), [str(home / folder / name), *arguments]))
    return found


def romio_tests(mpi: str) -> list[Program]:
    """Those with requests of ROMIO's own are not built for Open MPI."""
    programs = rows(ROMIO, set_up() / "files" / mpi / "romio")
    return [program for program in programs if Path(program.argv[0]).exists()]


def hdf5_tests(mpi: str) -> list[Program]:
    return list(rows(HDF5, set_up() / "files" / mpi / "hdf5" / "testpar"))


SUITES: Mapping[str, Callable[[str], list[Program]]] = {
    "mpich": mpich_tests,
    "romio": romio_tests,
    "hdf5": hdf5_tests,
}


def verdict(result: Completed) -> tuple:
    """Some say by their exit status what they have found, others in words only."""
    said = result.stdout
    return result.returncode == 0, "No Errors" in said, said.count("PASSED"), said.count("FAILED")


def offloaded_transfers(ranks: Sequence[Mapping]) -> int:
    ways = [rank["files"].get(way, {}) for rank in ranks for way in ("write", "read")]
    return sum(way.get("offloaded_count", 0) for way in ways)


def environment(way: str) -> dict[str, str]:
    return NATIVE | WAYS[way][1] | {"HDF5TestExpress": "3", "HDF5_ALARM_SECONDS": "3600"}
