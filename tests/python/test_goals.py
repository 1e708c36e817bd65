# SPDX-License-Identifier: BSD-3-Clause
"""The checks of every `offpath bench`, with made-up results, and their goals in the documents."""

import importlib
import inspect
import re

import pytest
from conftest import ROOT
from offpath.bench import balance, compression_transfers, goals
from offpath.bench.commands import Benchmarks
from offpath.bench.kit import trust
from offpath.bench.suite import alltoall, bspmm, collectives, halo3d, krylov, minimd, multicast, onesided, openmp
from offpath.bench.suite import plan as bench_plan

MIB = 1 << 20
PAGES = [ROOT / "docs" / "performance.md", *sorted((ROOT / "docs" / "performance").glob("*.md"))]
DOCUMENT = "\n".join(page.read_text() for page in PAGES)


def values(checks):
    assert all(list(each) == ["name", "value", "goal", "met", "unjudged"] for each in checks)
    return {each["name"]: pytest.approx(each["value"]) for each in checks}


def met(checks):
    return {each["name"]: each["met"] for each in checks}


@pytest.mark.parametrize(
    ("name", "measured", "worst", "is_met"),
    [
        ("alltoall_gain_ratio", [1.9, 1.7, 1.8], 1.7, True),
        ("alltoall_gain_ratio", [1.9, 1.69], 1.69, False),
        ("alltoall_t_pure_ratio", [0.9, 1.05], 1.05, True),
        ("alltoall_t_pure_ratio", [0.9, 1.06], 1.06, False),
        ("collectives_gain_ratio", [1.2, 1.0], 1.0, False),
        ("adapt_overall_ratio", [0.9, 1.0], 1.0, False),
        ("plan_wrong_verdicts_count", [0], 0, True),
    ],
)
def test_a_check_is_the_worst_value_against_the_goal(name, measured, worst, is_met):
    (found,) = goals.check(name, measured, "mpich")
    number = goals.BY_NAME[name].number
    assert found == {"name": f"mpich/{name}", "value": worst, "goal": number, "met": is_met, "unjudged": None}


def test_what_was_not_measured_has_no_check():
    assert goals.check("openmp_map_us", []) == []


@pytest.mark.parametrize(
    ("name", "measured", "value", "met"),
    [
        ("alltoall_efficiency_1gbit_ratio", [0.97, 1.02], 1.02, None),  # more than all
        ("alltoall_efficiency_1gbit_ratio", [0.5, 1.02], 0.5, False),  # noise hides no miss
        ("openmp_overlap_ratio", [1.01], 1.01, None),
        ("openmp_empty_region_us", [-0.5, 3], -0.5, None),  # costs below zero
        ("multicast_cpu_ratio", [-0.1], -0.1, None),
        ("alltoall_gain_ratio", [1.9, 0], 0, None),
        ("minimd_error_ratio", [0], 0, True),
    ],
)
def test_what_cannot_be_is_noise_and_meets_no_goal(name, measured, value, met):
    (found,) = goals.check(name, measured)
    assert (found["value"], found["met"]) == (value, met)
    assert found["unjudged"] == (goals.NOISE if met is None else None)


def test_one_launch_gives_no_verdict():
    found = goals.check("openmp_map_us", [12.5]) + goals.check("alltoall_gain_ratio", [1.34], "openmpi")
    assert goals.judged(found, 2) == found
    once = goals.judged(found, 1)
    assert [each["met"] for each in once] == [None, None] and {each["unjudged"] for each in once} == {goals.ONE_LAUNCH}
    assert goals.summary(once) == (
        "checks: 0 of 2 met; not judged: one launch: openmp_map_us 12.5 (goal: at most 20), "
        "openmpi/alltoall_gain_ratio 1.34 (goal: at least 1.7)"
    )


def test_the_closing_line(capsys):
    found = goals.check("openmp_map_us", [12.5]) + goals.check("alltoall_gain_ratio", [1.34], "openmpi")
    trust.show({"meta": {"machine_load": None}, "checks": found})
    line = "checks: 1 of 2 met; not met: openmpi/alltoall_gain_ratio 1.34 (goal: at least 1.7)\n"
    assert capsys.readouterr().out == line
    assert goals.summary(found[:1]) == "checks: 1 of 1 met"
    assert goals.summary([]) == "checks: none (nothing was measured that has a goal)"


def test_every_benchmark_has_goals_and_a_file_for_them():
    # Nothing of ours, so nothing is aimed at; or what depends on the machine more than on us (amr has a bound; files
    # wants a file system and a core to spare); or what is either right or not (faults).
    without = {"amr", "faults", "files", "wire", "worker"}
    for bench, module in Benchmarks.modules.items():
        if bench not in without:
            assert any(goal.name.startswith(f"{bench}_") for goal in goals.GOALS), bench
        (command,) = importlib.import_module(module).app.registered_commands
        assert "json_file" in inspect.signature(command.callback).parameters, bench
    assert all(goal.name.endswith(("_ratio", "_us", "_ms", "_kib", "_count")) for goal in goals.GOALS)
    assert {goal.name.partition("_")[0] for goal in goals.GOALS} == set(Benchmarks.modules) - without | {"results"}
    assert len(goals.BY_NAME) == len(goals.GOALS)


def test_the_documents_have_the_same_goals():
    assert all(DOCUMENT.count(f"| {goal.cells} | ") == 1 for goal in goals.GOALS)
    named = set(re.findall(rf"`({'|'.join(Benchmarks.modules)}|results)(_\w+_(?:ratio|us|ms|kib|count))`", DOCUMENT))
    assert {"".join(each) for each in named} == set(goals.BY_NAME)


def test_minimd():
    def row(variant, gain, every=5, slower=1, error=None):
        case = {"atoms": 32000, "every": every, "skin": 0.3, "variant": variant, "dpu_slower": slower,
                "verified": True}  # fmt: skip
        return case | {"gain": gain} | ({"error": error} if error is not None else {})

    rows = [row("host", 1.0), row("offpath", 1.1, error=-0.08), row("hybrid", 1.4, error=0.02), row("relaxed", 1.5)]
    rows += [row("offpath", 1.2, every=2), row("hybrid", 9.0, every=2, slower=2)]  # that one is emulated
    found = minimd.BENCHMARK.checks({"meta": {}, "rows": rows})
    assert values(found) == {"minimd_gain_ratio": 1.2, "minimd_error_ratio": 0.08}
    assert all(met(found).values())


def test_bspmm():
    def row(way, gain, over_longer=1.1):
        return {"mpi": "mpich", "way": way, "gain": gain, "over_longer": over_longer, "verified": True}

    rows = [row("host", 1.0, 1.9), row("communication", 1.6), row("products", 0.9), row("both", 2.0), row("both", 1.95)]
    found = bspmm.BENCHMARK.checks({"meta": {"place": "lab"}, "rows": rows})
    assert values(found) == {
        "mpich/bspmm_gain_ratio": 1.6, "mpich/bspmm_both_gain_ratio": 1.95, "mpich/bspmm_longer_ratio": 1.1,
    }  # fmt: skip
    assert all(met(found).values())
    without_host = bspmm.BENCHMARK.checks({"meta": {"place": "lab"}, "rows": [row("both", None)]})
    assert values(without_host) == {"mpich/bspmm_longer_ratio": 1.1}
    assert bspmm.BENCHMARK.checks({"meta": {"place": "loopback"}, "rows": rows}) == []


def test_halo3d():
    rows = [{"mpi": "mpich", "gain": gain, "error": error, "verified": right}
            for gain, error, right in ((1.2, -0.05, True), (1.4, 0.08, True), (0.5, 0.9, False))]  # fmt: skip
    found = halo3d.BENCHMARK.checks({"meta": {}, "rows": rows})
    assert values(found) == {"mpich/halo3d_gain_ratio": 1.2, "mpich/halo3d_error_ratio": 0.08}
    assert all(met(found).values())


def timed(mpi, size, peer, t_pure, t_total, verified=True, **more):
    times = {"t_pure_ns": t_pure, "t_total_ns": t_total, "efficiency": t_pure / t_total}
    mode = "dpu" if peer == "offpath" else "host"
    return {"mpi": mpi, "bytes": size, "peer": peer, "mode": mode, "verified": verified} | times | more


def compared(rows, rate):
    return {"meta": {"rate": rate, "mpi_versions": {"openmpi": "1", "mpich": "1"}}, "rows": rows}


def alltoall_rows(mpi, per_peer, host, offpath, **more):
    sizes = {"bytes_per_peer": per_peer} | more
    return [timed(mpi, 2 * per_peer, "host", *host, **sizes), timed(mpi, 2 * per_peer, "offpath", *offpath, **sizes)]


def test_alltoall():
    rows = alltoall_rows("openmpi", MIB, (100, 200), (90, 100))
    rows += alltoall_rows("openmpi", 4 * MIB, (100, 180), (98, 100))
    rows += alltoall_rows("openmpi", MIB // 4, (1, 1), (9, 9))  # not aimed at
    rows += alltoall_rows("mpich", MIB, (100, 200), (90, 100), verified=False)  # wrong results are no results
    found = alltoall.BENCHMARK.checks(compared(rows, "250mbit"))
    assert values(found) == {
        "openmpi/alltoall_gain_ratio": 1.8,
        "openmpi/alltoall_efficiency_250mbit_ratio": 0.9,
        "openmpi/alltoall_t_pure_ratio": 0.98,
    }
    assert list(met(found).values()) == [True, False, True]
    assert "openmpi/alltoall_efficiency_1gbit_ratio" in met(alltoall.BENCHMARK.checks(compared(rows, "1gbit")))
    assert len(alltoall.BENCHMARK.checks(compared(rows, "2gbit"))) == 2
    assert alltoall.BENCHMARK.checks(compared(rows, None)) == []  # loopback
    assert alltoall.BENCHMARK.checks(compared(rows[:1], "1gbit")) == []


def test_collectives():
    def rows(mpi, collective, size, totals):
        return [timed(mpi, size, peer, 100, total, collective=collective) for peer, total in totals.items()]

    measured = rows("openmpi", "ibcast", MIB, {"host": 200, "tests": 105, "offpath": 100})
    measured += rows("openmpi", "ibcast", MIB // 4, {"host": 100, "offpath": 900})  # not aimed at
    measured += rows("mpich", "ibcast", MIB, {"host": 200, "async": 120, "offpath": 125})
    measured += rows("mpich", "iallreduce", MIB, {"host": 200})  # Offpath's launch failed
    found = collectives.BENCHMARK.checks(compared(measured, "1gbit"))
    assert values(found) == {
        "openmpi/collectives_efficiency_1gbit_ratio": 1.0, "openmpi/collectives_gain_ratio": 1.05,
        "mpich/collectives_efficiency_1gbit_ratio": 0.8, "mpich/collectives_gain_ratio": 0.96,
        "mpich/collectives_unchanged_gain_ratio": 0.96,
    }  # fmt: skip
    assert list(met(found).values()) == [True, True, False, False, False]
    assert collectives.BENCHMARK.checks(compared(measured, None)) == []

    # MPI_Test needs another program; without a thread of the MPI's own there is no best of those that do not.
    totals = {"host": 200, "tests": 90, "thread": 110, "thread-yield": 104, "offpath": 100}
    found = collectives.BENCHMARK.checks(compared(rows("openmpi", "ibcast", MIB, totals), "1gbit"))
    assert values(found) == {
        "openmpi/collectives_efficiency_1gbit_ratio": 1.0, "openmpi/collectives_gain_ratio": 0.9,
        "openmpi/collectives_unchanged_gain_ratio": 1.04,
    }  # fmt: skip
    assert list(met(found).values()) == [True, False, True]


def test_a_dpu_beside_the_cores():
    def row(placement, size, t_pure, t_total, collective="ibcast"):
        peer = "offpath" if placement == "cores" else f"offpath-{placement}"
        mode = {"mode": "dpu", "placement": placement}
        return timed("openmpi", size, peer, t_pure, t_total, collective=collective) | mode

    rows = [row("cores", MIB, 100, 100), row("dpu", MIB, 105, 110), row("node", MIB, 900, 990)]
    rows += [row("cores", 4 * MIB, 100, 100), row("dpu", 4 * MIB, 120, 121), row("dpu", MIB // 4, 900, 990)]
    rows += [row("dpu", MIB, 99, 100, "ireduce")]  # those of the cores failed
    found = [each for each in collectives.BENCHMARK.checks(compared(rows, "1gbit")) if "_dpu_" in each["name"]]
    assert values(found) == {
        "openmpi/collectives_dpu_t_pure_ratio": 1.2, "openmpi/collectives_dpu_efficiency_ratio": 105 / 110,
    }  # fmt: skip
    assert list(met(found).values()) == [False, True]
    assert not any("_dpu_" in each["name"] for each in collectives.BENCHMARK.checks(compared(rows[:1], "1gbit")))


def test_onesided():
    def row(interface, operation, target, t_pure, peer="offpath"):
        more = {"interface": interface, "operation": operation, "target": target}
        return timed("openmpi", 8, peer, t_pure, 2 * t_pure, **more)

    rows = [row("mpi", "put", "idle", 100), row("mpi", "put", "computing", 110), row("mpi", "put", "idle", 1, "host")]
    rows += [row("mpi", "get", "idle", 100), row("mpi", "get", "computing", 150)]
    rows += [row("shmem", "put", "idle", 100), row("shmem", "put", "computing", 90), row("shmem", "get", "idle", 1)]
    found = onesided.BENCHMARK.checks({"meta": {}, "rows": rows})
    assert values(found) == {
        "openmpi/mpi/onesided_computing_ratio": 1.5, "openmpi/shmem/onesided_computing_ratio": 0.9,
    }  # fmt: skip
    assert list(met(found).values()) == [False, True]


def test_openmp():
    measured = {"empty region": 1.0, "bulk map(to) / memcpy": 0.7, "memcpy between processes": 5.0}
    rows = [
        {"name": name, "value": {"median": value, "min": 0, "max": 99}, "verified": True}
        for name, value in measured.items()
    ]
    found = openmp.BENCHMARK.checks({"meta": {}, "regions": rows})
    assert values(found) == {"openmp_empty_region_us": 1.0, "openmp_bulk_to_ratio": 0.7}
    assert list(met(found).values()) == [True, False]


def test_krylov():
    times = {
        ("same ranks", "cg"): 100, ("same ranks", "pipecg"): 120, ("all cores", "cg"): 50,
        ("all cores", "offpath_cg"): 10, ("phi 0", "offpath_cg"): 110, ("phi 0", "offpath_pipecg"): 130,
        ("phi auto", "offpath_cg"): 80, ("phi auto", "offpath_pipecg"): 126,
    }  # fmt: skip
    rows = [
        {"setting": where, "solver": who, "iteration_ns": ns, "verified": True} for (where, who), ns in times.items()
    ]
    found = krylov.BENCHMARK.checks({"meta": {}, "rows": rows})
    assert values(found) == {
        "cg/krylov_same_ranks_ratio": 0.8, "cg/krylov_all_cores_ratio": 1.6, "pipecg/krylov_same_ranks_ratio": 1.05,
    }  # fmt: skip
    assert list(met(found).values()) == [True, False, False]


def test_balance():
    """Also of pieces that compute, and of a rank that is loaded."""
    rows = [
        {"piece": piece, "uneven": uneven, "gain": gain, "perfect": 0.9, "verified": True}
        for piece, uneven, gain in [("waits", "none", 1), ("waits", "slow", 2.2), ("computes", "none", 0.8),
                                    ("computes", "slow", 1.4), ("computes", "loaded", 1.1)]
    ]  # fmt: skip
    assert values(balance.BENCHMARK.checks({"meta": {}, "rows": rows})) == {
        "tasks_balance_gain_ratio": 1.1, "tasks_balance_perfect_ratio": 0.9, "tasks_balance_even_ratio": 1.25,
    }  # fmt: skip


def test_multicast():
    def row(peer, size, ns, cpu_ns, collective="iallgather", verified=True):
        return {"collective": collective, "nodes": 4, "bytes": size, "peer": peer, "time_ns": ns,
                "service_cpu_ns": cpu_ns, "verified": verified}  # fmt: skip

    rows = [row("multicast", MIB, 110, 80), row("ring", MIB, 100, 100), row("multicast", 4 * MIB, 100, 90)]
    rows += [row("ring", 4 * MIB, 100, 100), row("multicast", 2 * MIB, 900, 900), row("chain", MIB, 1, 1, "ibcast")]
    checks = multicast.BENCHMARK.checks
    plain = {"while": "nothing", "lossy": False}
    assert values(checks({"meta": plain, "rows": rows})) == {"multicast_time_ratio": 1.1, "multicast_cpu_ratio": 0.9}
    assert checks({"meta": plain | {"lossy": True}, "rows": rows}) == []
    wrong = [row("multicast", MIB, 9, 9), row("ring", MIB, 1, 1, verified=False)]
    assert checks({"meta": plain, "rows": wrong}) == []


def test_compression():
    def row(wish, t_pure, field="tiles", verified=True):
        return {"rate": "1gbit", "collective": "ialltoall", "field": field, "bytes": MIB, "wish": wish,
                "t_pure_ns": t_pure, "verified": verified}  # fmt: skip

    rows = [row("off", 100), row("lz4", 50), row("zstd:shuffle=8", 40, verified=False), row("auto", 51)]
    rows += [row("off", 100, "random"), row("lz4", 110, "random"), row("auto", 104, "random")]
    checks = compression_transfers.BENCHMARK.checks({"meta": {}, "rows": rows})
    assert values(checks) == {"compression_auto_ratio": 1.04}


def test_plan():
    rows = [{"mpi": "mpich", "error": error, "right": error < 0.2, "verified": True} for error in (-0.04, 0.01, 0.3)]
    found = bench_plan.BENCHMARK.checks({"meta": {}, "rows": rows})
    assert values(found) == {
        "mpich/plan_median_error_ratio": 0.04, "mpich/plan_worst_error_ratio": 0.3,
        "mpich/plan_wrong_verdicts_count": 1,
    }  # fmt: skip
    assert list(met(found).values()) == [True, False, False]
