# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench collectives`: with recorded launches what it makes of them, and small real runs of its own."""

import contextlib
import json
from dataclasses import replace

import pytest
from bench_support import assert_self_contained, prefix_with
from conftest import assert_one_line_error, offpath, requires_root
from offpath.base import console
from offpath.base.errors import UserError
from offpath.base.processes import Completed
from offpath.bench import compared, measuring
from offpath.bench.kit import peers, trust, turns
from offpath.bench.kit.turns import Site
from offpath.bench.measuring import ALONE, Series
from offpath.bench.suite import collectives as bench_collectives
from offpath.launch import mpis
from offpath.pages import charts
from rich.console import Console


def launch_rows(sizes, total_ns, work, verified=True):
    rows = []
    for size in sizes:
        times = {"t_pure": 100, "t_compute": 110, "t_total": total_ns}
        row = {"bytes": size, "ranks": 2, "work_iterations": work, "verified": verified, "host_cpu_ns": 1,
               "compute_cpu_ns": 1, "agent_cpu_ns": 0, "service_cpu_ns": 2}  # fmt: skip
        for name, value in times.items():
            row |= {f"{name}_ns": value, f"{name}_min_ns": value - 1, f"{name}_max_ns": value + 1}
        rows.append(row)
    return rows


class RecordedPlace:
    """Launches end as `script` says: a t_total, "dies" (without results), "late" (after them), or an exception."""

    meta = {"place": "recorded", "nodes": 2, "ppn": 1, "rate": None, "rate_bits_per_s": None, "hardware": "none"}

    def __init__(self, script):
        self.script = list(script)
        self.argvs, self.envs = [], []

    def run(self, mpi, argv, offload, env):
        self.argvs.append(list(argv))
        self.envs.append(dict(env))
        step = self.script.pop(0)
        if isinstance(step, type):
            raise step
        if step != "dies":
            sizes = [int(size) for size in argv[argv.index("--sizes") + 1].split(",")]
            given = "--work-iterations" in argv
            work = int(argv[argv.index("--work-iterations") + 1].split(",")[0]) if given else 1000 + len(self.argvs)
            with open(argv[argv.index("--json") + 1], "w") as file:
                json.dump({"rows": launch_rows(sizes, 200 if step == "late" else step, work)}, file)
        return Completed(list(argv), 139 if step in ("dies", "late") else 0, "", "")


@pytest.fixture(autouse=True)
def built(tmp_path, monkeypatch):
    """What is started here is never run, but must exist."""
    for mpi in ("openmpi", "mpich"):
        (tmp_path / "bench" / mpi).mkdir(parents=True)
        (tmp_path / "bench" / mpi / "collectives").touch()
    monkeypatch.setenv("OFFPATH_PREFIX", str(tmp_path))


BOTH = (mpis.OPENMPI, mpis.MPICH)
PEERS = compared.chosen("tests,async,thread,thread-yield", BOTH, 8, "*:dpu")
BENCHMARK = bench_collectives.BENCHMARK


def measured(script, sizes=(64, 128), runs=1, mpi="mpich", collectives=("ibcast",)):
    where = RecordedPlace(script)
    series = [Series(mpi, name, sizes, PEERS) for name in collectives]
    meta = launched(where, series, runs) | {"mpi_versions": {mpi: "1"}}
    return where, {"meta": meta, "rows": measuring.rows(series)}


def launched(where, series, runs, elsewhere=measuring.EVERYTHING_HERE):
    site = Site([each.round(3, elsewhere) for each in series], lambda: contextlib.nullcontext(where))
    return turns.measure([site], runs)


def test_peers_take_turns_and_do_the_same_work():
    where, result = measured([200, 180, 160, 120, 220, 180, 170, 130], runs=2)
    assert [argv[argv.index("--tests") + 1] for argv in where.argvs if "--tests" in argv] == ["8", "8"]
    assert "--work-iterations" not in where.argvs[0]
    assert all(argv[argv.index("--work-iterations") + 1] == "1001,1001" for argv in where.argvs[1:])
    assert [(row["bytes"], row["peer"]) for row in result["rows"]] == [
        (size, peer) for size in (64, 128) for peer in ("host", "tests", "async", "offpath")
    ]
    by_peer = {row["peer"]: row for row in result["rows"][:4]}
    assert by_peer["host"]["t_total_ns"] == 210 and by_peer["offpath"]["t_total_ns"] == 125
    assert (by_peer["host"]["t_total_min_ns"], by_peer["host"]["t_total_max_ns"]) == (199, 221)
    assert by_peer["offpath"]["efficiency"] == 110 / 125
    assert by_peer["offpath"]["speedup"] == 210 / 125
    assert by_peer["offpath"]["mode"] == "dpu" and by_peer["tests"]["mode"] == "host"
    assert peers.total_gain(by_peer) == 165 / 125  # against the best of the others
    assert trust.exit_status(result) == 0


def test_each_mpi_has_progress_threads_of_its_own():
    where, result = measured([200, 105, 150, 140, 125], mpi="openmpi")
    assert [row["peer"] for row in result["rows"][:5]] == ["host", "tests", "thread", "thread-yield", "offpath"]
    progress = {"OMPI_MCA_btl_tcp_progress_thread": "1"}
    alone, tests, thread, yields, offpath = where.envs
    assert (thread, yields) == (progress, progress | {"OMPI_MCA_mpi_yield_when_idle": "1"})
    assert not any("progress" in name for env in (alone, tests, offpath) for name in env)
    by_peer = {row["peer"]: row for row in result["rows"][:5]}
    assert all(by_peer[name]["mode"] == "host" for name in ("thread", "thread-yield"))
    assert (peers.total_gain(by_peer), peers.unchanged_gain(by_peer)) == (105 / 125, 140 / 125)
    where, _ = measured([200, 180, 160, 120])
    assert where.envs[2]["MPIR_CVAR_ASYNC_PROGRESS"] == "1" and len(where.envs) == 4


def test_the_best_that_leaves_the_program_as_it_is_is_known_only_with_the_mpis_own_thread():
    _, result = measured([200, 180, 160, 120])
    by_peer = {row["peer"]: row for row in result["rows"][:4]}
    assert peers.unchanged_gain(by_peer) == 160 / 120
    assert peers.unchanged_gain({peer: row for peer, row in by_peer.items() if peer != "async"}) is None
    assert peers.unchanged_gain({peer: row for peer, row in by_peer.items() if peer != "offpath"}) is None


@pytest.mark.parametrize(
    ("kinds", "asked", "words"),
    [
        (["openmpi"], "host,async", "Open MPI has no peer async (that is MPICH's own thread). Give --mpi mpich, or "
         "--peers with thread or thread-yield."),
        (["mpich"], "thread-yield", "MPICH has no peer thread-yield (that is Open MPI's own thread). Give --mpi "
         "openmpi, or --peers with async."),
    ],
)  # fmt: skip
def test_a_thread_that_no_measured_mpi_has_is_refused(kinds, asked, words):
    with pytest.raises(UserError) as refused:
        compared.chosen(asked, kinds, 8, None)
    assert str(refused.value) == words


def test_the_usual_peers_have_each_mpis_own_thread():
    for kinds in ([mpis.OPENMPI], [mpis.MPICH], BOTH):
        found = [peer.name for peer in compared.chosen(None, kinds, 8, None)]
        assert found == ["host", "tests", "async", "thread", "offpath"]


def test_a_launch_that_dies_after_its_results_counts_and_one_without_is_reported(capsys):
    _, result = measured([200, 180, "late", 120, 200, 180, "dies", 120], runs=2)
    assert {row["peer"]: row["runs"] for row in result["rows"]} == {"host": 2, "tests": 2, "async": 1, "offpath": 2}
    assert [(each["peer"], "failed" in each["problem"]) for each in result["meta"]["failures"]] == [("async", True)]
    assert trust.exit_status(result) == 1
    BENCHMARK.show(result)
    said = capsys.readouterr()
    assert "Its results count" in said.err and "failed: mpich, ibcast, async" in said.err


def test_each_placement_has_its_place_and_must_be_reached(capsys):
    here, there, down = RecordedPlace([200, 120]), RecordedPlace([150]), RecordedPlace([200])
    down_run = down.run
    down.run = lambda *given: replace(down_run(*given), stats=[{"reason": "the DPU is gone."}])
    chosen = compared.chosen("host", BOTH, 8, None, ("cores", "dpu", "node"))
    series = [Series("mpich", "ibcast", (64,), chosen)]
    meta = launched(here, series, 1, {"dpu": there, "node": down})
    assert meta["complete"]
    found = {row["placement"]: row["t_total_ns"] for row in measuring.rows(series)}
    assert found == {None: 200, "cores": 120, "dpu": 150}
    (failure,) = meta["failures"]
    assert failure["peer"] == "offpath-node" and "the DPU is gone" in failure["problem"]


def test_without_the_mpi_alone_nothing_is_compared():
    where, result = measured(["dies", "dies"], runs=2)
    assert len(where.argvs) == 2 and result["rows"] == []
    assert len(result["meta"]["failures"]) == 2 * len(["host", "tests", "async", "offpath"])


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit], ids=["ctrl_c", "a_time_limit"])
def test_an_interruption_keeps_what_was_measured(ending, capsys):
    script = [200, 180, 160, 120, 300, ending]
    _, result = measured(script, collectives=("ibcast", "iallreduce", "ialltoall"))
    assert result["meta"]["complete"] is False and trust.exit_status(result) == 130
    assert [(row["collective"], row["peer"]) for row in result["rows"] if row["bytes"] == 64] == [
        ("ibcast", "host"), ("ibcast", "tests"), ("ibcast", "async"), ("ibcast", "offpath"), ("iallreduce", "host"),
    ]  # fmt: skip
    BENCHMARK.show(result)
    said = capsys.readouterr()
    assert "interrupted after 5 of 12 launches" in said.err
    assert "ibcast" in said.out and "iallreduce" in said.out and "ialltoall" not in said.out
    assert "1.33 x" in said.out
    assert_self_contained(BENCHMARK.html(result))


def test_what_offloading_takes_and_saves_is_said(monkeypatch, capsys):
    monkeypatch.setattr(console, "out", Console(width=80, highlight=False))
    series = Series("mpich", "ibcast", (64,), (ALONE, measuring.offpath_peer(None)))
    for peer, total_ns, cpu_ns in (("host", 5_000_000, 1_000_000), ("offpath", 3_000_000, 2_500_000)):
        [row] = launch_rows((64,), total_ns, 1)
        used = {"host_cpu_ns": cpu_ns, "service_cpu_ns": 0 if peer == "host" else 500_000}
        series.launches[peer].append([row | used])
    rows = measuring.rows([series], nodes=2)
    assert [(row["core_more_ns"], row["node_saved_ns"]) for row in rows] == [(0, 0), (2_000_000, 4_000_000)]
    BENCHMARK.show({"meta": {"mpi_versions": {"mpich": "1"}}, "rows": rows})
    assert "takes 0.002 core-s more, saves 0.004 node-s" in capsys.readouterr().out
    assert not list(trust.impossible(rows[1] | {"core_more_ns": -1, "node_saved_ns": -1}))


def test_table_fits_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(console, "out", Console(width=80, highlight=False))
    _, result = measured([200e6, 180e6, 160e6, 120e6], sizes=(8, 4 << 20), collectives=("ireduce_scatter_block",))
    BENCHMARK.show(result)
    lines = capsys.readouterr().out.splitlines()
    assert any("4 MiB" in line and "1.33 x  1.33 x" in line for line in lines)
    assert any("gain" in line and "as is" in line for line in lines)
    assert max(map(len, lines)) <= 80 and not any("…" in line for line in lines)


def test_a_wrong_result_is_said_aloud(capsys):
    series = Series("mpich", "ibcast", (64,), (ALONE,))
    series.launches["host"].append(launch_rows((64,), 100, 1, verified=False))
    meta = {"mpi_versions": {"mpich": "1"}, "complete": True, "failures": []}
    result = {"meta": meta, "rows": measuring.rows([series])}
    result["meta"]["machine_load"] = None
    trust.show_doubts(result)
    assert "WRONG RESULT" in capsys.readouterr().err
    assert trust.exit_status(result) == 1


def test_estimate_grows_with_what_there_is_to_do():
    def estimate(sizes, runs, rate):
        return measuring.estimate_s([Series(mpis.MPICH, "ibcast", sizes, PEERS)], runs, 10, rate)

    assert estimate((1 << 20,), 2, 250e6) == 2 * estimate((1 << 20,), 1, 250e6)
    assert estimate((4 << 20,), 1, 250e6) > estimate((1 << 20,), 1, 250e6) > estimate((1 << 20,), 1, 1e9)


prefix = prefix_with("bench", "collectives")


TINY = ["--collectives", "ibcast,ireduce_scatter_block", "--sizes", "8,4K", "--runs", "1", "--repeats", "1"]


def check_result(result, kinds):
    expected = [
        (kind, collective, size, peer)
        for kind in kinds
        for collective in ("ibcast", "ireduce_scatter_block")
        for size in (8, 4096)
        for peer in ("host", "tests", "async" if kind == "mpich" else "thread", "offpath")
    ]
    found = [(row["mpi"], row["collective"], row["bytes"], row["peer"]) for row in result["rows"]]
    died = {failure["peer"] for failure in result["meta"]["failures"]}
    assert died <= {"async"}, result["meta"]["failures"]
    assert found == [each for each in expected if each in found or each[3] not in died]
    assert all(row["verified"] and row["runs"] == 1 for row in result["rows"])
    for key in ("hardware", "cores", "rate", "mpi_versions", "seed", "commit", "nodes", "ppn", "date", "policy_file",
                "collectives", "peers", "tests", "complete"):  # fmt: skip
        assert key in result["meta"], key


@requires_root
def test_command_in_a_lab(prefix, tmp_path):
    file, page = tmp_path / "a.json", tmp_path / "a.html"
    result = offpath(
        "bench", "collectives", "--rate", "1gbit", *TINY, "--json", str(file), "--html", str(page), env=prefix
    )
    written = json.loads(file.read_text())
    assert result.returncode == (1 if written["meta"]["failures"] else 0), result.stderr
    check_result(written, ["openmpi", "mpich"])
    assert written["meta"]["place"] == "lab" and written["meta"]["rate"] == "1gbit"
    assert "16 launches, about" in result.stderr
    assert written["checks"] == []  # nothing is aimed at for these sizes
    assert result.stdout.splitlines()[-1].startswith("checks: none")
    assert_self_contained(page.read_text())


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--mpi", "lam"], "lam"),
        (["--placement", "cores,card"], "card"),
        (["--placement", "dpu", "--loopback"], "placement dpu"),
        (["--link-rate", "2gbit"], "--placement cores,dpu"),
        (["--placement", "dpu", "--link-latency", "5s"], "5s"),
        (["--sizes", "2G"], "2G"),
        (["--collectives", "ibarrier"], "ibarrier"),
        (["--peers", "host,ucc"], "ucc"),
        (["--mpi", "mpich", "--peers", "thread"], "MPICH has no peer thread"),
        (["--rate", "quick"], "quick"),
        (["--html", "/proc/nowhere/a.html"], "/proc/nowhere"),
    ],
)
def test_refuses_bad_arguments(prefix, arguments, word):
    assert_one_line_error(offpath("bench", "collectives", *arguments, env=prefix), word, status=2)


def test_other_protections_are_peers_with_the_same_policy():
    alone, offpath, *others = compared.chosen("unprotected,encrypt", BOTH, 8, "*:dpu")
    assert (alone.name, offpath.name) == ("host", "offpath") and "OFFPATH_FABRIC_SECURITY" not in offpath.env
    policy = {"OFFPATH_POLICY": "*:dpu"}
    assert {peer.name: peer.env for peer in others} == {
        "encrypt": policy | {"OFFPATH_FABRIC_SECURITY": "encrypt"},
        "unprotected": policy | {"OFFPATH_FABRIC_SECURITY": "user-data-unprotected"},
    }
    assert all(peer.offload for peer in others)
    page_of = [peers.title(peer.name) for peer in (alone, offpath, *others)]
    assert len(set(page_of)) == 4 and len(set(peers.COLOURS.values())) == len(peers.COLOURS) <= len(charts.SERIES)
