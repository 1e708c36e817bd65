# SPDX-License-Identifier: BSD-3-Clause
"""halo3d natively: the known solution, and the same bits for any number of ranks and any time tiles."""

import json
import re

import pytest
from bench_support import mpirun, program
from conftest import offpath, requires_root, succeeded
from offpath.bench.kit import Case
from offpath.bench.suite import halo3d
from offpath.plan import machine as machines


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


def test_the_planner_is_asked_about_the_typical_launch(monkeypatch):
    """What it saves of the run is saved by the sweeps, in equal parts."""

    def predicted(found, machine, node_of, policy):
        assert (found.name, policy) == ("typical", ("send:dpu",))
        return halo3d.predict.Prediction(40e6, 40e6, 40e6, 30e6, 30e6, {}, 0, 2)

    class Recorded:
        node_of = (0, 1)

        def __init__(self, name):
            self.name = name

    def sweeps(sweep_ms, bits="a", name=""):
        return halo3d.Sweeps(sweep_ms, 2.0, bits, Recorded(name))

    monkeypatch.setattr(halo3d.predict, "predict", predicted)
    host = Case({}, None, launches=[sweeps(7), sweeps(5, name="typical"), sweeps(4)])
    row = halo3d._row(host, Case({}, None, launches=[sweeps(4), sweeps(3)]), {}, "send:dpu", 10)
    assert row["predicted_ms"] == 4.0 and row["host_ms"] == 5 and row["offpath_ms"] == 3.5 and row["runs"] == 2
    assert row["error"] == pytest.approx(4 / 3.5 - 1) and row["bits"] == "a"
    assert halo3d._row(host, Case({}, None, launches=[sweeps(4, "b")]), {}, "send:dpu", 10)["bits"] == "several"


@requires_root
@pytest.mark.nightly
def test_the_benchmark_has_the_planner_beside(tmp_path):
    file, machine = tmp_path / "bench.json", tmp_path / "machine.json"
    machine.write_text(json.dumps(machines.default()))
    small = ("--points", "32", "--sweeps", "6", "--tiles", "1,3", "--runs", "1", "--policy", "send:4K-inf:dpu")
    succeeded(offpath("bench", "halo3d", *small, "--machine", str(machine), "--json", str(file)))
    rows = json.loads(file.read_text())["rows"]
    assert [row["tiles"] for row in rows] == [1, 3] and len({row["bits"] for row in rows}) == 1
    assert all(row["verified"] and row["predicted_ms"] > 0 for row in rows) and rows[0]["tile_gain"] == 1
