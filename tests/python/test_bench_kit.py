# SPDX-License-Identifier: BSD-3-Clause
"""What benchmarks have in common, with made-up launches: turns, rows, tables, options, and how a result is judged."""

import contextlib
import json
import re
import subprocess
import sys

import pytest
import typer
from conftest import captured, succeeded
from offpath.base.errors import UserError
from offpath.base.sizes import parse_numbers
from offpath.bench import measuring
from offpath.bench.kit import Benchmark, Case, Page, Site, Table, options, peers, programs, rows, turns
from offpath.bench.kit.peers import Beside, Chart
from offpath.bench.kit.tables import ABSENT, cell


def launching(log, name, outcomes=(), **labels):
    """A case whose launches end as `outcomes` say: an exception, or what was measured."""
    script = list(outcomes)

    def launch(where):
        log.append((where, name))
        outcome = script.pop(0) if script else {"ns": len(log), "verified": True}
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return Case({"who": name} | labels, launch)


def test_cases_of_a_round_take_turns_and_places_follow_each_other(capsys):
    log, there = [], []

    @contextlib.contextmanager
    def place(name):
        there.append(name)
        yield name
        there.remove(name)

    accuracy = launching(log, "once")
    accuracy.once = True
    first = Site([[launching(log, "a"), launching(log, "b"), accuracy], [launching(log, "c")]], lambda: place("x"))
    second = Site([[launching(log, "d")]], lambda: place("y"), at_end=lambda where: {"end": [where, *there]})
    meta = turns.measure([first, second], 2, seconds=7)
    assert log == [("x", name) for name in ["a", "b", "once", "a", "b", "c", "c"]] + [("y", "d"), ("y", "d")]
    assert meta == {"runs": 2, "complete": True, "failures": [], "end": ["y", "y"]} and there == []
    assert "9 launches, about 7 s" in capsys.readouterr().err


def test_a_place_says_where_it_is_when_there_is_one():
    class Place(contextlib.nullcontext):
        meta = {"nodes": 2}

    def site():
        return Site([[launching([], "a")]], lambda: contextlib.nullcontext(Place()))

    assert turns.measure([site()], 1)["nodes"] == 2
    assert "nodes" not in turns.measure([site(), site()], 1)


def test_a_launch_that_fails_is_counted_said_once_and_left_out(capsys):
    hang = subprocess.TimeoutExpired("program", 30)
    bad = launching([], "bad", [UserError("it died.", 1), UserError("again.", 1), {"ns": 1}], size=8)
    slow = launching([], "slow", [hang, {"ns": 1}, {"ns": 3}])
    meta = turns.measure([Site([[bad, slow]])], 3)
    assert meta["complete"] and [each["problem"] for each in meta["failures"]] == [
        "it died.", "did not end within 30 s (it hangs). Please report this.", "again.",
    ]  # fmt: skip
    assert meta["failures"][0] == {"who": "bad", "size": 8, "problem": "it died."}
    assert [row["runs"] for row in rows.of_cases([bad, slow])] == [1, 2]
    said = capsys.readouterr().err
    assert "bad, 8: it died." in said and "again" not in said


def test_what_was_asked_for_in_vain_ends_the_command():
    with pytest.raises(UserError, match="no such way"):
        turns.measure([Site([[launching([], "a", [UserError("no such way")])]])], 3)


@pytest.mark.parametrize("ending", [KeyboardInterrupt(), SystemExit(1)], ids=["ctrl_c", "a_time_limit"])
def test_an_interruption_keeps_what_was_measured(ending, capsys):
    case, left = launching([], "a", [{"ns": 5, "verified": True}, ending]), []
    with contextlib.ExitStack() as stack:
        stack.callback(left.append, True)
        meta = turns.measure([Site([[case]], lambda: stack)], 3)
    assert not meta["complete"] and left and rows.of_cases([case])[0]["ns"] == 5
    assert "interrupted after 1 of 3 launches" in capsys.readouterr().err


def test_a_row_is_what_launches_come_to():
    def launch(ns, least, verified=True):
        return {"bytes": 8, "ns": ns, "ns_min": least, "ns_max": 2 * ns, "gain": ns / 8, "verified": verified}

    (row,) = rows.of_cases([Case({"who": "a"}, None, launches=[launch(4, 3), launch(9, 2), launch(8, 7)])], ["gain"])
    assert row == {
        "who": "a", "bytes": 8, "ns": 8, "ns_min": 2, "ns_max": 18, "gain": 1.0, "gain_min": 0.5, "gain_max": 1.125,
        "verified": True, "runs": 3,
    }  # fmt: skip
    sizes = Case({}, None, launches=[[{"bytes": 1, "ns": 1}, {"bytes": 2, "ns": 4}], [{"bytes": 1, "ns": 4}] * 2])
    assert [(row["ns"], row["verified"]) for row in rows.of_cases([sizes])] == [(2, False), (4, False)]
    assert not rows.over_launches([launch(1, 1), launch(1, 1, verified=False)])["verified"]
    assert rows.of_cases([Case({}, None)]) == []


def test_a_cell_is_a_template_or_a_function():
    row = {"bytes": 65536, "ns": 1_500_000, "none": None}
    assert cell("{bytes:size} in {ns:ms}", row) == "64 KiB in 1.50"
    assert cell("{none:ms}", row) == cell("{missing}", row) == cell(lambda row: row["missing"], row) == ABSENT
    assert cell(lambda row: str(row["ns"] + 1), row) == "1500001"


TABLE = Table(
    "With {mpi:mpi}", [("who", "{who}"), ("ms", "{ns:ms}"), ("other", "{other:.1f}")],
    where=lambda row: row["who"] != "hidden", note="ms: of one",
)  # fmt: skip
ROWS = [
    {"mpi": mpi, "who": who, "ns": 2e6, "rate_ratio": 0.5, "verified": True}
    for mpi in ("openmpi", "mpich")
    for who in ("a", "hidden")
]


def test_a_table_for_each_value_without_columns_that_are_empty(capsys):
    TABLE.show({"meta": {}, "rows": ROWS})
    said = capsys.readouterr().out
    assert said.index("With Open MPI") < said.index("With MPICH") and said.count("ms: of one") == 2
    assert "2.00" in said and "other" not in said and "hidden" not in said
    cards = list(TABLE.cards({"meta": {}, "rows": ROWS}))
    assert len(cards) == 2 and "With MPICH" in cards[1] and "hidden" not in cards[1]
    assert list(TABLE.parts({"meta": {}, "rows": []})) == []


def described(**more):
    values = {"multicast_time_ratio": lambda rows: [row["rate_ratio"] for row in rows]}
    return Benchmark([TABLE], values, subject=lambda row: row["mpi"], **more)


def test_goals_see_right_rows_only_and_those_of_each():
    wrong = [row | {"rate_ratio": 9, "verified": verified} for row, verified in zip(ROWS, (False, None))]
    found = described().checks({"meta": {}, "rows": [*ROWS, *wrong]})
    assert [(each["name"], each["value"]) for each in found] == [
        ("openmpi/multicast_time_ratio", 0.5), ("mpich/multicast_time_ratio", 0.5),
    ]  # fmt: skip
    assert described(aimed_at=lambda meta: meta["plain"]).checks({"meta": {"plain": False}, "rows": ROWS}) == []


def test_a_goal_of_one_rate_is_aimed_at_there():
    efficiency = {"alltoall_efficiency_1gbit_ratio": lambda rows: [0.5 for _ in rows]}
    for rate, count in (("1gbit", 1), ("250mbit", 0), (None, 0)):
        assert len(Benchmark([], efficiency).checks({"meta": {"rate": rate}, "rows": ROWS})) == count


def test_the_end_of_every_benchmark(tmp_path, capsys):
    benchmark = described(page=Page("A title", "a lead"))
    failure = {"mpi": "mpich", "who": "a", "problem": "it died."}
    meta = {"runs": 3, "complete": True, "failures": [failure], "hardware": "emulated"}
    files = tmp_path / "a.json", tmp_path / "a.html"
    with pytest.raises(typer.Exit) as ended:
        benchmark.deliver({"meta": meta, "rows": list(ROWS)}, *files)
    said = capsys.readouterr()
    assert ended.value.exit_code == 1 and "failed: mpich, a: it died." in said.err
    assert said.out.splitlines()[-1] == "checks: 2 of 2 met"
    assert json.loads(files[0].read_text())["rows"] == ROWS
    page = files[1].read_text()
    assert page.index("a lead") < page.index("With Open MPI") < page.index("mpich a") and "emulated" in page


def test_what_was_measured_is_kept_before_it_is_shown(tmp_path, monkeypatch, capsys):
    """`| head -1`, or a folder that has gone meanwhile, must not cost an hour's results."""

    def shown(*_):
        raise BrokenPipeError

    benchmark = described(page=Page("A title", "a lead"))
    meta = {"runs": 3, "complete": True, "failures": [], "hardware": "emulated"}
    with pytest.raises(FileNotFoundError):
        benchmark.deliver({"meta": meta, "rows": list(ROWS)}, tmp_path / "gone" / "a.json")
    assert "checks: 2 of 2 met" in capsys.readouterr().out
    monkeypatch.setattr(Benchmark, "show", shown)
    files = tmp_path / "a.json", tmp_path / "a.html"
    with pytest.raises(BrokenPipeError):
        benchmark.deliver({"meta": meta, "rows": list(ROWS)}, *files)
    assert json.loads(files[0].read_text())["rows"] == ROWS and "A title" in files[1].read_text()


def test_an_interruption_before_anything_was_measured_leaves_the_files_of_before(tmp_path):
    files = tmp_path / "a.json", tmp_path / "a.html"
    for file in files:
        file.write_text("of an earlier run")
    with pytest.raises(typer.Exit) as ended:
        meta = {"runs": 3, "complete": False, "failures": []}
        described(page=Page("A title", "a lead")).deliver({"meta": meta, "rows": []}, *files)
    assert ended.value.exit_code == 130
    assert [file.read_text() for file in files] == ["of an earlier run"] * 2


NEW = """
from offpath.base import commands
from offpath.bench.kit import Benchmark, Case, Site, Table, options, rows, turns

BENCHMARK = Benchmark([Table("A table", [("who", "{who}"), ("ns", "{ns}")])])
app = commands.alone()


@app.command()
def new_command(json_file: options.JsonFile = None) -> None:
    \"\"\"Measure something.\"\"\"
    case = Case({"who": "me"}, lambda where: {"ns": 5, "verified": True})
    meta = turns.measure([Site([[case]])], 2)
    BENCHMARK.deliver({"meta": meta, "rows": rows.of_cases([case])}, json_file)
"""


def test_a_module_in_the_folder_is_a_benchmark(tmp_path):
    """It is found, named and run without being named anywhere."""
    (tmp_path / "new.py").write_text(NEW)
    code = (
        f"from offpath.bench import suite; suite.__path__.append({str(tmp_path)!r})\n"
        "import sys; sys.argv = ['offpath', 'bench', 'new', '--json', 'out.json']\n"
        "from offpath.cli.main import main; main()"
    )
    done = succeeded(captured([sys.executable, "-c", code], cwd=tmp_path, timeout=60))
    (row,) = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert row == {"who": "me", "ns": 5, "verified": True, "runs": 2}
    assert "A table" in done.stdout and done.stdout.splitlines()[-1].startswith("checks: none")


def test_lists_with_commas():
    assert options.names("b, a,b", {"a": 1, "b": 2}, "a letter") == ["b", "a"]
    assert parse_numbers("1, 3", "--counts") == [1, 3]
    for text in ("", "1,x", "0", "-1", "9"):
        with pytest.raises(UserError, match=f"--counts {text} is not"):
            parse_numbers(text, "--counts", most=8)
    with pytest.raises(UserError, match="'c' is not a letter"):
        options.names("a,c", "ab", "a letter")


def test_a_program_says_what_is_wrong(tmp_path):
    program = tmp_path / "program"
    program.write_text(f'#!{sys.executable}\nimport sys\nprint("[1]")\nsys.stderr.write("program: bad\\n")\n'
                       "sys.exit(int(sys.argv[1]))\n")  # fmt: skip
    program.chmod(0o755)
    assert programs.json_output([program, 0]) == [1]
    for status, code in ((2, 2), (1, turns.FAILED)):
        with pytest.raises(UserError, match="bad") as ended:
            programs.output([program, status])
        assert ended.value.exit_code == code


def test_an_interruption_before_anything_was_measured_is_no_error():
    assert not measuring.has_links({"runs": 3, "complete": False})


def test_peers_stand_beside_each_other_and_as_bars(capsys):
    found = [
        {"mpi": "mpich", "what": "ibcast", "bytes": size, "peer": peer, "mode": mode, "t_total_ns": ns * 1e6}
        for size in (8, 1024)
        for peer, mode, ns in (("host", "host", 4), ("offpath", "dpu", 2))
        if (size, peer) != (1024, "offpath")
    ]
    shown = {"meta": {}, "rows": found}
    Beside("With {mpi:mpi}", "{what}", [("", "{t_total_ns:ms}")], {"gain": peers.total_gain}).show(shown)
    said = capsys.readouterr().out
    assert re.search(r"8 B +4.00 +2.00 +2.00 x", said) and re.search(r"1 KiB +4.00 +- +-", said)
    chart = Chart("Bars of {what}", lambda row: row["t_total_ns"], "{t_total_ns:ms}", peers.total_gain, "a note")
    (card,) = chart.cards(shown)
    assert "Bars of ibcast" in card and "2.00  (2.00 x)" in card and card.count("1 KiB host") == 1 and "a note" in card
