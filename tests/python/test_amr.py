# SPDX-License-Identifier: BSD-3-Clause
"""amr on its own, natively: the known solution, water that stays, and the same bits however many ranks there are."""

import json

import pytest
from bench_support import mpirun, program

SMALL = ("--across", 8, "--down", 2, "--cells", 4, "--steps", 240)


def amr(mpi, np, folder, *arguments, name="amr"):
    file = folder / "out.json"
    result = mpirun(mpi, np, program("apps", mpi, name), *map(str, arguments), "--json", str(file))
    assert result.returncode == 0 and "verified: yes" in result.stdout, result.stdout + result.stderr
    return json.loads(file.read_text())


def test_a_dam_breaks_as_it_should(tmp_path):
    """Cells of half the width, around the waves alone: half the error."""
    common = ("--across", 16, "--down", 1, "--cells", 8)
    runs = [amr("mpich", 2, tmp_path, *common, "--levels", levels, "--steps", 20 << levels) for levels in (1, 2, 3)]
    assert [run["time"] for run in runs] == pytest.approx([runs[0]["time"]] * 3, rel=0.05)
    for coarse, fine in zip(runs, runs[1:]):
        assert fine["error"] < 0.65 * coarse["error"]
    assert runs[2]["patches_of_level"][0] > 0


def test_any_number_of_ranks_has_the_same_water(tmp_path):
    """Waves run through all ranks and back from the walls, over patches that become finer and coarser."""
    jobs = (("openmpi", 1), ("mpich", 4), ("openmpi", 5))
    runs = [amr(mpi, np, tmp_path, *SMALL, "--case", "wave") for mpi, np in jobs]
    for run in runs:
        assert run["bits"] == runs[0]["bits"] and run["volume"] == runs[0]["volume"]
        assert run["changed_patches"] == runs[0]["changed_patches"] > 10 and run["lost"] <= 1e-13
        assert run["cell_steps"] == runs[0]["cell_steps"]
    assert [len(stretch) for stretch in runs[1]["loads_s"]] == [4] * 60


def test_still_water_stays_still(tmp_path):
    start, later = (amr("mpich", 2, tmp_path, *SMALL[:-2], "--case", "rest", "--steps", steps) for steps in (0, 30))
    assert start["bits"] == later["bits"] and later["patches_of_level"] == [16, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--cells", "7"], "--cells"),
        (["--levels", "none"], "--levels"),
        (["--case", "flood"], "--case"),
        (["--patches", "tasks"], "amr_tasks"),
    ],
)
def test_bad_arguments_are_one_line(arguments, named):
    result = mpirun("mpich", 2, program("apps", "mpich", "amr"), *arguments)
    assert result.returncode != 0 and result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if line.startswith("amr: ")]
    assert len(lines) == 1 and named in lines[0]
