# SPDX-License-Identifier: BSD-3-Clause
"""What an automatic policy remembers: a small database, of which no damage may stop a run."""

import json
import sqlite3

import pytest
from conftest import assert_one_line_error, offpath, require
from offpath.base.paths import paths
from offpath.launch import memory, policy_table
from offpath.launch.job import Job, job_of

JOB = Job("a processor, 2 cores", "program", "mpirun -n 2")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def learned(path="host", turns=1000, host_ns=10, dpu_ns=20, why="adapted"):
    return {
        "path": path, "why": why, "host_ns": host_ns, "dpu_ns": dpu_ns, "turns_count": turns, "switches_count": 1,
        "explored_count": 4,
    }  # fmt: skip


def rank(**ranges):
    return {"learned": {f"ialltoall:{sizes.replace('_', '-')}:nodes=2": entry for sizes, entry in ranges.items()}}


def built():
    require(paths().policy_program)


def test_what_is_believed():
    ranks = [
        {},
        rank(
            **{
                "1M_2M": learned("dpu", turns=50),
                "2M_4M": learned(turns=31),
                "4M_8M": learned(dpu_ns=0),
            }
        ),
        rank(**{"1M_2M": learned("host", turns=60), "8M_16M": learned(why="lost")}),
    ]
    (one,) = memory.learned_of(ranks)
    assert (one["range"], one["path"], one["turns"]) == ("ialltoall:1M-2M:nodes=2", "host", 60)


def test_a_later_run_starts_from_it():
    built()
    assert memory.rows(JOB) is None
    memory.keep(JOB, [rank(**{"1M_2M": learned("host"), "2M_4M": learned("dpu")})])
    memory.keep(JOB, [rank(**{"1M_2M": learned("dpu")})])  # found anew
    assert memory.rows(JOB) == "ialltoall:1M-2M:nodes=2:dpu,ialltoall:2M-4M:nodes=2:dpu"
    for other in (
        Job("another, 2 cores", JOB.program, JOB.launch),
        Job(JOB.machine, "other", JOB.launch),
        Job(JOB.machine, JOB.program, "mpirun -n 4"),
    ):
        assert memory.rows(other) is None


def test_what_was_learned_on_more_nodes_comes_later():
    """Rows hold for so many nodes and more, and later ones win."""
    built()
    memory.keep(
        JOB,
        [
            {
                "learned": {
                    f"ialltoall:1M-2M{nodes}": learned("dpu" if nodes else "host")
                    for nodes in (":nodes=16", ":nodes=2", "")
                }
            }
        ],
    )
    assert memory.rows(JOB) == ("ialltoall:1M-2M:host,ialltoall:1M-2M:nodes=2:dpu,ialltoall:1M-2M:nodes=16:dpu")


def test_more_than_the_ranks_take_is_left_out():
    built()
    memory.keep(
        JOB,
        [{"learned": {f"ialltoall:1M-2M:nodes={nodes}": learned(turns=1000 + nodes) for nodes in range(1000, 2000)}}],
    )
    rows = memory.rows(JOB)
    assert 0.9 * memory.MOST_BYTES < len(rows) <= memory.MOST_BYTES
    assert "nodes=1999" in rows and "nodes=1000:" not in rows


def test_it_is_believed_for_some_months():
    memory.keep(JOB, [rank(**{"1M_2M": learned(), "2M_4M": learned()})])
    with sqlite3.connect(memory.file()) as database:
        database.execute("UPDATE practice SET seen = datetime('now', '-200 days') WHERE range LIKE '%:1M-2M:%'")
    database.close()
    built()
    assert memory.rows(JOB) == "ialltoall:2M-4M:nodes=2:host"
    memory.keep(JOB, [rank(**{"4M_8M": learned()})])
    assert len(memory.practices()) == 2


def test_what_an_older_release_has_learned_is_forgotten(capsys):
    memory.file().parent.mkdir()
    with sqlite3.connect(memory.file()) as database:
        database.execute("CREATE TABLE practice (machine TEXT)")
        database.execute("PRAGMA user_version = 1")
    database.close()
    memory.keep(JOB, [rank(**{"1M_2M": learned()})])
    assert len(memory.practices()) == 1 and capsys.readouterr().err == ""


def test_a_run_that_ended_while_it_made_the_database_is_no_harm(monkeypatch, capsys):
    connect = sqlite3.connect

    class Dies(sqlite3.Connection):
        def execute(self, sql, *values):
            if sql.startswith("PRAGMA user_version ="):
                raise KeyboardInterrupt
            return super().execute(sql, *values)

    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Dies, **k))
    with pytest.raises(KeyboardInterrupt):
        memory.keep(JOB, [rank(**{"1M_2M": learned()})])
    monkeypatch.setattr(sqlite3, "connect", connect)
    memory.keep(JOB, [rank(**{"1M_2M": learned()})])
    assert len(memory.practices()) == 1 and capsys.readouterr().err == ""


def test_names_that_are_no_text_are_kept_as_text(tmp_path):
    built()
    job = job_of(["./solver\udcff"])
    memory.keep(job, [rank(**{"1M_2M": learned()})])
    assert memory.rows(job) == "ialltoall:1M-2M:nodes=2:host"
    assert memory.forget("./solver\udcff") == 1
    sent = tmp_path / "x.json"
    practice = {name: 1 if name in memory.NUMBERS else "host\ud800" for name in memory.COLUMNS}
    sent.write_text(json.dumps({"format": memory.FORMAT, "practices": [practice | {"path": "host"}]}))
    assert_one_line_error(offpath("policy", "import", str(sent)), str(sent))


def test_practices_go_from_one_to_another_and_to_a_site(tmp_path, monkeypatch, capsys):
    built()
    memory.keep(JOB, [rank(**{"1M_2M": learned("host"), "2M_4M": learned("host")})])
    sent = tmp_path / "practices.json"
    assert "2 written" in offpath("policy", "export", str(sent)).stderr
    assert "0 taken" in offpath("policy", "import", str(sent)).stderr
    said = json.loads(sent.read_text())
    said["practices"][0] |= {"path": "dpu", "seen": "9999-01-01 00:00:00"}
    sent.write_text(json.dumps(said))
    assert "1 taken" in offpath("policy", "import", str(sent)).stderr
    changed, other = (each["range"] for each in said["practices"])
    assert f"{changed}:dpu" in memory.rows(JOB) and f"{other}:host" in memory.rows(JOB)

    # A site's: any program of any launch; the user's own come first.
    offpath("policy", "forget")
    monkeypatch.setattr(memory, "SITE_FILE", sent)
    said["practices"][0] |= {"program": "*", "launch": "*"}
    sent.write_text(json.dumps(said))
    stranger = Job(JOB.machine, "another", "")
    assert memory.rows(stranger) == f"{changed}:dpu"
    assert memory.rows(Job("other processor", "another", "")) is None
    memory.keep(stranger, [{"learned": {changed: learned("host")}}])
    assert memory.rows(stranger) == f"{changed}:host"
    sent.write_text("{}")
    assert memory.rows(stranger) == f"{changed}:host"
    assert str(sent) in capsys.readouterr().err


HUGE = json.dumps({"format": memory.FORMAT, "practices": [
    {name: 1 << 63 if name in memory.NUMBERS else "host" for name in memory.COLUMNS}
]})  # fmt: skip


LOW = HUGE.replace(str(1 << 63), str(-(1 << 63) - 1))


@pytest.mark.parametrize(
    "content",
    ("", "[]", '{"format": 1, "practices": []}', '{"format": 2, "practices": [{}]}', HUGE, LOW),
)
def test_what_holds_no_practices_is_one_line(tmp_path, content):
    file = tmp_path / "x.json"
    file.write_text(content)
    assert_one_line_error(offpath("policy", "import", str(file)), str(file))
    assert_one_line_error(offpath("policy", "import", str(tmp_path / "none")), "none")
    assert_one_line_error(offpath("policy", "export", str(tmp_path / "no" / "x.json")), "cannot be written")


@pytest.mark.parametrize("content", (b"no database at all, but long enough to be looked at" * 40, None))
def test_a_damaged_or_foreign_database_is_one_line(content, capsys):
    file = memory.file()
    file.parent.mkdir()
    if content is None:
        with sqlite3.connect(file) as database:
            database.execute("CREATE TABLE theirs (x)")
        database.close()
    else:
        file.write_bytes(content)
    assert memory.rows(JOB) is None
    (line,) = capsys.readouterr().err.splitlines()
    assert str(file) in line and "offpath policy forget" in line
    assert_one_line_error(offpath("policy", "list"), str(file))
    assert offpath("policy", "forget").returncode == 0
    memory.keep(JOB, [rank(**{"1M_2M": learned()})])
    assert len(memory.practices()) == 1


def test_damaged_entries_are_left_out():
    built()
    memory.keep(JOB, [rank(**{"1M_2M": learned(), "2M_4M": learned()})])
    for damage in ("turns = NULL", "range = NULL", "host_ns = 'x'", "path = X'FF'"):
        with sqlite3.connect(memory.file()) as database:
            database.execute(f"UPDATE practice SET {damage} WHERE range LIKE '%:1M-2M:%'")
        database.close()
        assert memory.rows(JOB) == "ialltoall:2M-4M:nodes=2:host"
        assert offpath("policy", "list").returncode == 0
        memory.keep(JOB, [rank(**{"1M_2M": learned()})])


def test_rows_that_the_ranks_would_refuse_are_left_out(capsys):
    built()
    memory.keep(JOB, [{"learned": {"ialltoall:x": learned()}}])
    assert memory.rows(JOB) is None
    assert "offpath policy forget" in capsys.readouterr().err


def test_list_and_forget():
    assert json.loads(offpath("policy", "list", "--json").stdout) == []
    memory.keep(JOB, [rank(**{"1M_2M": learned(), "2M_4M": learned()})])
    memory.keep(Job(JOB.machine, "other", ""), [rank(**{"1M_2M": learned()})])
    shown = json.loads(offpath("policy", "list", "--json").stdout)
    assert len(shown) == 3
    assert {"program", "range", "path", "host_ns", "dpu_ns", "turns", "seen"} <= set(shown[0])
    assert "2 forgotten" in offpath("policy", "forget", "/opt/program").stderr
    assert len(memory.practices()) == 1
    assert "1 forgotten" in offpath("policy", "forget").stderr
    assert memory.practices() == []


def test_run_hands_it_to_the_ranks(tmp_path):
    built()
    command = ["sh", "-c", "echo $OFFPATH_MPI_ADAPT/$OFFPATH_POLICY/$OFFPATH_MPI_MEMORY"]
    memory.keep(job_of(command), [rank(**{"1M_2M": learned()})])
    tuned = tmp_path / "tuned"
    tuned.write_text("ibcast:host\n")
    said = offpath(
        "run", "--quiet", "--policy", "auto,iallreduce:host", "--policy-file", str(tuned), "--", *command
    ).stdout.strip()
    assert said == "on/iallreduce:host/ibcast:0-inf:host,ialltoall:1M-2M:nodes=2:host"
    assert offpath("run", "--quiet", "--", *command).stdout.strip() == "//"
    said = offpath("run", "--quiet", "--", *command, env={"OFFPATH_POLICY": "auto,ibcast:host"}).stdout.strip()
    assert said == "on/ibcast:host/ialltoall:1M-2M:nodes=2:host"


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (None, (False, None)),
        ("auto", (True, "")),
        ("a:host", (False, "a:host")),
        ("a:host, auto", (True, "a:host")),
    ],
)
def test_the_word_auto(policy, expected):
    assert policy_table.split_automatic(policy) == expected
