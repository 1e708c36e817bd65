# SPDX-License-Identifier: BSD-3-Clause
"""minimd on its own, natively: the published temperatures, energies and pressures; schedules keep the physics."""

import json

import pytest
from bench_support import mpirun, program

# atoms: {step: (temperature, potential energy, pressure)}; miniMD's, whose last digit may differ
KNOWN = {
    32000: {
        0: (1.440000, -6.773368, -5.019707),
        100: (0.7522746, -5.750134, 0.2187181),
        1000: (0.7016939, -5.673190, 0.7132916),
    },
    108000: {
        0: (1.440000, -6.773368, -5.019681),
        100: (0.7295161, -5.716058, 0.4437285),
        1000: (0.6980593, -5.667330, 0.7413875),
    },
}


def minimd(mpi, np, folder, *arguments, name="minimd"):
    file = folder / "out.json"
    result = mpirun(mpi, np, program("apps", mpi, name), *map(str, arguments), "--json", str(file))
    assert result.returncode == 0 and "verified: yes" in result.stdout, result.stderr
    return json.loads(file.read_text())


def thermo(written):
    return {row["step"]: (row["temperature"], row["potential"], row["pressure"]) for row in written["thermo"]}


def assert_known(written):
    for step, values in thermo(written).items():
        for value, known in zip(values, KNOWN[written["atoms"]][step]):
            assert abs(value - known) <= 2e-7 * max(1, abs(known)) * (5 if step == 1000 else 1), (step, value, known)


def test_published_values_with_any_number_of_ranks(tmp_path):
    runs = [minimd(mpi, np, tmp_path, "--cells", 20) for mpi, np in (("openmpi", 1), ("mpich", 2), ("openmpi", 4))]
    for written in runs:
        assert set(thermo(written)) == {0, 100}
        assert_known(written)
        for step, values in thermo(written).items():  # what the order of summation leaves open
            assert values == pytest.approx(thermo(runs[0])[step], rel=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize(("cells", "steps"), [(20, 1000), (30, 100), (30, 1000)])
def test_published_values_at_length(cells, steps, tmp_path):
    assert_known(minimd("mpich", 2, tmp_path, "--cells", cells, "--steps", steps, "--thermo", steps))


@pytest.mark.parametrize(("mpi", "np"), [("mpich", 1), ("openmpi", 3), ("openmpi", 4)])
def test_forces_by_old_lists_keep_the_physics(mpi, np, tmp_path):
    """While no pair is missing from a list it does not matter which list it is, but for the order of summation."""
    common = ("--cells", 8, "--steps", 40, "--every", 4, "--thermo", 20, "--guard", "on")
    host = minimd(mpi, np, tmp_path, *common)
    relaxed = minimd(mpi, np, tmp_path, *common, "--schedule", "relaxed")
    assert host["guard_hits"] == 0 and relaxed["guard_hits"] == 0
    assert relaxed["rebuilds"] == relaxed["relaxed"] == 10
    for step, values in thermo(host).items():
        assert thermo(relaxed)[step] == pytest.approx(values, rel=1e-9, abs=1e-9)


def test_the_guard_rebuilds_before_a_pair_is_missed(tmp_path):
    """Lists that live much too long: every rank rebuilds when the guard says so, and nothing is lost."""
    common = ("--cells", 8, "--steps", 60, "--thermo", 20, "--guard", "on")
    exact = minimd("mpich", 2, tmp_path, *common, "--every", 1, "--skin", 0.5)
    guarded = minimd("mpich", 2, tmp_path, *common, "--every", 30, "--schedule", "relaxed")
    assert guarded["guard_hits"] >= 5
    for step, values in thermo(exact).items():
        assert thermo(guarded)[step] == pytest.approx(values, rel=1e-9, abs=1e-9)
    careless = minimd("mpich", 2, tmp_path, *common[:-1], "off", "--every", 30)
    assert thermo(careless)[60] != pytest.approx(thermo(exact)[60], rel=1e-9)


def energies(folder, steps, schedule):
    options = ("--cells", 6, "--steps", steps, "--every", 5, "--thermo", 50, "--guard", "on", "--schedule", schedule)
    return [row["total"] for row in minimd("mpich", 1, folder, *options)["thermo"]]


def test_energy_drifts_as_on_the_host(tmp_path):
    """Chaos takes the two apart after a while: then their energies agree as two runs on the host would."""
    host, relaxed = (energies(tmp_path, 1000, each) for each in ("host", "relaxed"))
    assert relaxed[:5] == pytest.approx(host[:5], rel=1e-9)
    assert relaxed == pytest.approx(host, abs=3e-3)


@pytest.mark.nightly
def test_energy_drifts_as_on_the_host_for_long(tmp_path):
    host, relaxed = (energies(tmp_path, 10000, each)[100:] for each in ("host", "relaxed"))
    assert sum(relaxed) / len(relaxed) == pytest.approx(sum(host) / len(host), abs=1e-3)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--cells", "0"], "--cells"),
        (["--skin", "much"], "--skin"),
        (["--schedule", "best"], "--schedule"),
        (["--cells", "2"], "--cells"),
        (["--schedule", "offpath"], "--schedule relaxed"),
    ],
)
def test_bad_arguments_are_one_line(arguments, named):
    result = mpirun("mpich", 2, program("apps", "mpich", "minimd"), *arguments)
    assert result.returncode != 0 and result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if line.startswith("minimd: ")]
    assert len(lines) == 1 and named in lines[0]
