# SPDX-License-Identifier: BSD-3-Clause
"""`offpath tune`: decisions from recorded rows, the file it writes, and a real run on a library that does nothing."""

import contextlib
import json

import pytest
from bench_support import prefix_with, program
from conftest import assert_one_line_error, offpath, requires_root, succeeded
from offpath.base.paths import paths
from offpath.bench import tune_command, tuning
from offpath.launch import policy_table
from offpath.launch.policy_table import Table
from offpath.plan import calibrate_command


def policy_rows(decisions, table):
    return [row for _, text in tuning.sources(decisions, table) for row in text.split(",")]


SIZES = (1024, 4096, 16384, 65536)


def rows(gains, mpi="mpich", collective="ialltoall", sizes=SIZES):
    """{path: gain by size}, as measured rows."""
    return [
        {"mpi": mpi, "collective": collective, "bytes": size, "peer": path, "speedup": gain, "verified": True}
        for path, each in ({"host": [1.0] * len(sizes)} | gains).items()
        for size, gain in zip(sizes, each, strict=True)
    ]


def decide(gains, nodes=2, collective="ialltoall"):
    return tuning.decide(rows(gains, collective=collective), collective, nodes, ["mpich"])


@pytest.mark.parametrize(
    ("gains", "first"),
    [
        ([0.5, 0.9, 1.2, 1.7], 2),
        ([1.1, 1.1, 1.1, 1.1], 0),
        ([0.5, 0.6, 0.7, 0.8], 4),
        ([1.5, 1.5, 0.9, 1.7], 3),  # what a lucky size below a lost one gains is not believed
        ([0.9, 1.029, 1.031, 1.03], 2),  # the guard
        ([2.0, 2.0, 2.0, 1.02], 4),
    ],
)
def test_offloads_from_where_every_larger_size_wins(gains, first):
    decision = decide({"dpu": gains})
    assert decision.first == first and decision.offloads == (first < 4)
    expected = ["ialltoall:nodes=2:host"]
    assert decision.rows() == expected + ([f"ialltoall:{SIZES[first]}-inf:nodes=2:dpu"] if first < 4 else [])


def test_all_mpis_must_gain():
    measured = rows({"dpu": [0.9, 1.2, 1.3, 1.4]}) + rows({"dpu": [0.9, 0.9, 1.1, 1.4]}, mpi="openmpi")
    decision = tuning.decide(measured, "ialltoall", 2, ["openmpi", "mpich"])
    assert decision.first == 2 and decision.gains == (0.9, 0.9, 1.1, 1.4)


def test_messages_are_between_two_ranks_whatever_the_nodes():
    measured = [
        {name: value for name, value in row.items() if name != "collective"}
        for row in rows({"dpu": [0.9, 1.1, 1.2, 1.2]})
    ]
    for row in measured:
        row["pattern"] = "posted"
    others = rows({"dpu": [2.0] * 4})
    decision = tuning.decide(others + measured, "send", 4, ["mpich"], {"pattern": "posted"})
    assert decision.rows() == ["send:nodes=2:host", "send:4096-inf:nodes=2:dpu"]
    inside = tuning.decide(measured, "send", 1, ["mpich"], {"pattern": "posted"})
    assert policy_rows([inside, decision], SHIPPED) == [
        "send:host", "send:4096-inf:dpu", "send:nodes=2:host", "send:nodes=2:host", "send:4096-inf:nodes=2:dpu",
    ]  # fmt: skip


def test_missing_and_wrong_results_do_not_win():
    measured = rows({"dpu": [1.5, 1.5, 1.5, 1.5]})
    measured[-2]["verified"] = False
    assert tuning.decide(measured, "ialltoall", 2, ["mpich"]).first == 3
    assert tuning.decide(measured[:-1], "ialltoall", 2, ["mpich"]).first == 4
    assert tuning.decide(rows({"dpu": [2.0] * 4}), "ialltoall", 2, ["openmpi", "mpich"]).first == 4


def test_an_algorithm_must_be_clearly_better_than_the_default():
    gains = {"dpu": [1.1, 1.1, 1.1, 1.1], "dpu=ring": [1.12, 1.3, 1.3, 0.5], "dpu=doubling": [1.0, 1.0, 1.0, 1.5]}
    decision = decide(gains, collective="iallreduce")
    assert decision.rows() == [
        "iallreduce:nodes=2:host",
        "iallreduce:1024-4096:nodes=2:dpu",
        "iallreduce:4096-65536:nodes=2:dpu=ring",
        "iallreduce:65536-inf:nodes=2:dpu=doubling",
    ]


def test_an_algorithm_may_win_where_the_default_loses():
    decision = decide({"dpu": [0.5, 0.9, 0.9, 0.9], "dpu=ring": [0.5, 0.9, 1.1, 1.2]}, collective="iallgather")
    assert decision.rows()[1:] == ["iallgather:16384-inf:nodes=2:dpu=ring"]


ROW = {"text": "ialltoall:512K-inf:nodes=2:dpu", "source": "measured", "collective": "ialltoall", "nodes": 2}
SHIPPED = Table([ROW], [])


def test_more_nodes_come_later_and_one_node_says_nothing_of_several():
    wins, loses = {"dpu": [1.5] * 4}, {"dpu": [0.5] * 4}
    assert policy_rows([decide(loses, nodes=4), decide(wins)], SHIPPED) == [
        "ialltoall:nodes=2:host",
        "ialltoall:1024-inf:nodes=2:dpu",
        "ialltoall:nodes=4:host",
    ]
    assert policy_rows([decide(wins, nodes=1)], SHIPPED) == [
        "ialltoall:host", "ialltoall:1024-inf:dpu", "ialltoall:nodes=2:host", "ialltoall:512K-inf:nodes=2:dpu"
    ]


def test_rows_that_were_not_measured_say_so():
    if not paths().policy_program.exists():
        pytest.skip(f"{paths().policy_program} is not built")
    sources = tuning.sources([decide({"dpu": [1.5] * 4}, nodes=1)], SHIPPED)
    lines = tune_command.policy_lines(policy_table.parse(sources).rows)
    measured, shipped = lines[:2], lines[2:]
    assert [tuning.SHIPPED in line for line in lines] == [False, False, True, True]
    assert all("#" in line for line in shipped)
    assert measured == ["ialltoall:0-inf:host", "ialltoall:1K-inf:dpu"]
    assert policy_table.parse([("file", "\n".join(lines))]).texts("file") == [
        *measured, "ialltoall:0-inf:nodes=2:host", "ialltoall:512K-inf:nodes=2:dpu",
    ]  # fmt: skip


META = {
    "offpath": "0", "commit": None, "date": "today", "hardware": "emulated", "nodes": 2, "ppn": 1, "rate": "1gbit",
    "place": "lab", "processor": "one", "cores_available": 2, "mpi_versions": {"mpich": "4"}, "runs": 3, "repeats": 10,
}  # fmt: skip


def test_the_file_is_a_policy_and_says_what_it_is_for(tmp_path):
    if not paths().policy_program.exists():
        pytest.skip(f"{paths().policy_program} is not built")
    file = tmp_path / "policy"
    file.write_text("old")
    tune_command.write_policy(file, decide({"dpu": [0.9, 0.9, 1.5, 1.5]}).rows(), [META])
    text = file.read_text()
    assert "# emulated: 2 x 1 ranks, 1gbit; one, 2 cores; MPICH 4" in text
    assert policy_table.parse([("file", text)]).texts("file") == [
        "ialltoall:0-inf:nodes=2:host", "ialltoall:16K-inf:nodes=2:dpu",
    ]  # fmt: skip
    assert [each.name for each in tmp_path.iterdir()] == ["policy"]


def test_what_was_measured_is_kept_before_it_is_shown(tmp_path, monkeypatch, capsys):
    """`| head -1`, or a folder that has gone meanwhile, must not cost an hour's results."""

    def measured(_kinds, _conditions, series, _more):
        for case in (case for each in series for case in each.cases):
            case.launches.append(1.0)
        return {"meta": META | {"complete": True}, "rows": rows({"dpu": [0.9, 0.9, 1.5, 1.5]})}

    def shown(*_):
        raise BrokenPipeError

    monkeypatch.setenv(policy_table.FILE_VARIABLE, str(tmp_path / "policy"))
    monkeypatch.setattr(tune_command.measuring, "compare", measured)
    shows = tune_command._show
    monkeypatch.setattr(tune_command, "_show", shown)
    monkeypatch.setattr(calibrate_command, "show", shown)
    monkeypatch.setattr(calibrate_command.comparison, "place", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(calibrate_command.fitting, "calibrate", lambda *_: {"network": {"latency_ns": 1}})
    words = ["--mpi", "mpich", "--collectives", "ialltoall", "--runs", "1", "--json", str(tmp_path / "tuned.json")]
    with pytest.raises(BrokenPipeError):
        tune_command.app([*words, "--sizes", ",".join(map(str, SIZES))], standalone_mode=False)
    with pytest.raises(BrokenPipeError):
        calibrate_command.app(["--mpi", "mpich", "-o", str(tmp_path / "machine.json")], standalone_mode=False)
    assert "ialltoall:16K-inf:nodes=2:dpu" in (tmp_path / "policy").read_text()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["machine.json", "policy", "tuned.json"]
    monkeypatch.setattr(tune_command, "_show", shows)
    monkeypatch.setattr(tune_command, "write_policy", shown)
    with pytest.raises(BrokenPipeError):
        tune_command.app([*words, "--sizes", ",".join(map(str, SIZES))], standalone_mode=False)
    assert "ialltoall:16K-inf:nodes=2:dpu" in capsys.readouterr().out


prefix = prefix_with("bench", "collectives")


@pytest.mark.machine
def test_where_nothing_is_offloaded_nothing_is_decided(prefix, tmp_path):
    file, policy = tmp_path / "a.json", tmp_path / "new" / "policy"
    result = offpath(
        "tune", "--loopback", "--mpi", "mpich", "--collectives", "ibcast", "--sizes", "64,1K", "--runs", "1",
        "--repeats", "1", "--algorithms", "--json", str(file), env=prefix | {"OFFPATH_POLICY_FILE": str(policy)},
    )  # fmt: skip
    assert result.returncode == 1
    assert "nothing was offloaded" in result.stderr and "no policy file was written" in result.stderr
    assert not policy.exists()
    written = json.loads(file.read_text())
    assert written["policy"] == [] and written["file"] is None and written["decisions"] == []
    failed = [failure["peer"] for failure in written["measurements"][0]["meta"]["failures"]]
    assert failed == ["dpu", "dpu=chain", "dpu=binomial", "dpu=scatter_allgather", "dpu=multicast"]


@requires_root
def test_messages_get_a_row(tmp_path):
    program("bench", "mpich", "pt2pt")
    file, policy = tmp_path / "a.json", tmp_path / "policy"
    succeeded(offpath(
        "tune", "--mpi", "mpich", "--collectives", "send", "--nodes", "2", "--rate", "1gbit", "--sizes", "4K,64K",
        "--runs", "1", "--repeats", "1", "--json", str(file), env={"OFFPATH_POLICY_FILE": str(policy)},
    ))  # fmt: skip
    (decision,) = json.loads(file.read_text())["decisions"]
    assert (decision["collective"], decision["nodes"]) == ("send", 2)
    assert [each["bytes"] for each in decision["sizes"]] == [4096, 64 << 10]
    assert all(each["gain"] > 0 for each in decision["sizes"])
    lines = policy_table.parse([("file", policy.read_text())]).texts("file")
    assert lines[0] == "send:0-inf:nodes=2:host"


@pytest.mark.parametrize(
    ("arguments", "env", "word"),
    [
        (["--collectives", "ialltoallv"], {}, "ialltoallv"),
        (["--nodes", "2,x"], {}, "2,x"),
        (["--nodes", "0"], {}, "--nodes 0"),
        (["--sizes", "1T"], {}, "1T"),
        ([], {"OFFPATH_POLICY_FILE": "none"}, "--dry-run"),
        ([], {"OFFPATH_POLICY_FILE": "/proc/nowhere/policy"}, "/proc/nowhere"),
    ],
)
def test_refuses_bad_arguments(prefix, arguments, env, word):
    assert_one_line_error(offpath("tune", *arguments, env=prefix | env), word, status=2)
