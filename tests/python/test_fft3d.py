# SPDX-License-Identifier: BSD-3-Clause
"""fft3d on its own, natively: right for any grid and any number of ranks, the same for both MPIs."""

import json

import pytest
from bench_support import mpirun, program

CHECKSUMS: dict[tuple, str] = {}
ROWS = ["Application", "All communications", "MPI_Ialltoallv", "MPI_Waitany", "Other"]


def fft3d(mpi, np, *arguments):
    return mpirun(mpi, np, program("apps", mpi, "fft3d"), *arguments)


@pytest.mark.grid(4)
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
@pytest.mark.parametrize(
    ("np", "grid"), [(1, (6, 5, 7)), (2, (16, 16, 16)), (3, (12, 7, 10)), (4, (9, 5, 14)), (4, (13, 6, 3 + 2))]
)
def test_verifies_on_even_and_uneven_slabs(mpi, np, grid, tmp_path):
    nx, ny, nz = map(str, grid)
    file = tmp_path / "out.json"
    result = fft3d(mpi, np, "--nx", nx, "--ny", ny, "--nz", nz, "--repeats", "3", "--work", "2", "--json", str(file))
    assert result.returncode == 0, result.stderr
    assert "verified: yes (max forward error" in result.stdout
    written = json.loads(file.read_text())
    assert written["verified"] is True
    assert max(written["errors"].values()) < 1e-12
    assert written["ranks"] == np
    # Whichever MPI: the very same bits
    assert CHECKSUMS.setdefault((np, grid), written["checksum"]) == written["checksum"]


def test_transforms_alone_keep_the_energy_of_the_vortex(tmp_path):
    file = tmp_path / "out.json"
    assert fft3d("mpich", 2, "--n", "16", "--json", str(file)).returncode == 0
    assert abs(json.loads(file.read_text())["kinetic_energy"] - 1 / 8) < 1e-14


def test_prints_the_rows_of_the_table_and_they_add_up(tmp_path):
    file = tmp_path / "out.json"
    result = fft3d("openmpi", 2, "--n", "12", "--json", str(file))
    lines = result.stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Application"))
    assert [line.rsplit(None, 1)[0] for line in lines[start : start + 5]] == ROWS
    times = {name: row["avg"] for name, row in json.loads(file.read_text())["times_s"].items()}
    assert list(times) == ROWS
    assert abs(times["All communications"] - sum(times[row] for row in ROWS[2:])) < 1e-9
    assert times["All communications"] <= times["Application"]


def test_more_variables_than_fields():
    assert fft3d("mpich", 2, "--n", "8", "--variables", "6", "--repeats", "1").returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [["--n", "4"], ["--n", "many"], ["--variables", "0"], ["--work"], ["--nonsense", "1"], ["--repeats", "0"]],
)
def test_bad_arguments_are_one_line(arguments):
    result = fft3d("mpich", 2, *arguments)
    assert result.returncode != 0
    lines = [line for line in result.stderr.splitlines() if line.startswith("fft3d: ")]
    assert len(lines) == 1 and arguments[0] in lines[0]
    assert result.stdout == ""


def test_help_says_what_is_there_without_options():
    result = fft3d("mpich", 2, "--help")
    assert result.returncode == 0 and result.stdout.count("--variables N=4 ") == 1


def test_unwritable_json_is_an_error(tmp_path):
    result = fft3d("mpich", 1, "--n", "8", "--json", str(tmp_path / "no" / "folder.json"))
    assert result.returncode != 0
    assert "was not written (No such file or directory)" in result.stderr
