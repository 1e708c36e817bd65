# SPDX-License-Identifier: BSD-3-Clause
"""The figures of the documents are those of docs/figures: tables are made of them, and the worst is said."""

import re
import sys

import pytest
from conftest import ROOT
from offpath.bench import goals
from offpath.launch import progress

sys.path.insert(0, str(ROOT / "tools" / "docs"))

import figures  # noqa: E402
import gains  # noqa: E402
import measured  # noqa: E402
import reached  # noqa: E402

FRONT = measured.FRONT.read_text()
TEXTS = [page.read_text() for page in measured.PAGES]
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", figures.PAGES, ids=lambda page: page.name)
def test_tables_are_what_the_tool_makes(page):
    assert figures.written(page) == page.read_text(), "run: make figures"


@pytest.mark.parametrize("name", measured.names())
def test_measurements_stand_in_the_document_with_their_command(name):
    result = measured.load(name)
    assert {"benchmark", "about", "conditions", "launches", "columns", "rows"} <= set(result) and result["rows"]
    assert result["launches"] >= 1
    (page,) = (text for text in TEXTS if f"<!-- results {name} -->" in text)
    assert all(f"    {command}\n" in page for command in measured.commands(result))
    named = {field for _, template in result["columns"] for field, _ in measured.FIELD.findall(template)}
    assert named <= {field for row in result["rows"] for field in row}


def test_every_table_stands_once():
    marks = [mark for page in figures.PAGES for mark in figures.MARK.findall(page.read_text())]
    assert sorted(marks) == sorted([*figures.TABLES, *(f"results {name}" for name in measured.names())])


def test_each_goal_has_its_worst_value_at_the_top_or_is_not_measured():
    (top,) = re.findall(r"<!-- reached -->\n(.*?)<!-- end -->\n", FRONT, re.DOTALL)
    of_goal = r"^\| `(\w+)` \| ([^|]+) \| [^|]+ \| "
    row = of_goal + r"([\d.]+) \| ([^|]+) \| (yes|no|no \(one launch\)|{}|{}) \| ([^|]*?) ?\|$"
    rows = re.findall(row.format(goals.ONE_LAUNCH, goals.NOISE), top, re.MULTILINE)
    unmeasured = [name for name, _ in re.findall(of_goal + r"- \| - \| not measured \|  \|$", top, re.MULTILINE)]
    assert len(rows) + len(unmeasured) == len(top.splitlines()) - 2
    assert not any(value for name in unmeasured for value in reached.values(name))
    for name, aimed, value, where, met, limit in rows:
        goal = goals.BY_NAME[name]
        published = [each for each, _, _ in reached.values(name) if goal.can_be(each)]
        assert aimed == goal.text and where
        if met != goals.NOISE:
            assert float(value) == pytest.approx(goal.worst(published), rel=5e-3)
            assert goal.met_by(goal.worst(published)) == (met in ("yes", goals.ONE_LAUNCH))
        assert met in ("yes", goals.ONE_LAUNCH) or limit, f"{name}: what limits it?"
    assert set(reached.LIMITS) <= {name for name, *_ in rows}
    assert set(goals.BY_NAME) == {name for name, *_ in rows} | set(unmeasured)


def test_what_limits_a_goal_has_no_number_of_its_own():
    pages = "\n".join(text for text in TEXTS if text != FRONT)
    for goal, limit in reached.LIMITS.items():
        for number in re.findall(r"(?<![\d.])\d+(?:,\d{3})*(?:\.\d+)?", limit):
            assert re.search(rf"(?<![\d.]){re.escape(number)}(?!\d|\.\d)", pages), f"{goal}: no page says {number}"


@pytest.mark.parametrize("page", measured.PAGES[1:], ids=lambda page: page.name)
def test_a_page_is_short(page):
    """Two screens of text and tables, about one subject."""
    words = [word for word in page.read_text().split() if set(word) - set("|-")]
    assert len(words) <= 1500


def changed(monkeypatch, name, edit):
    """One measurement as it would be with other rows."""
    load = measured.load

    def loaded(each):
        result = load(each)
        if each == name:
            edit(result)
        return result

    monkeypatch.setattr(measured, "load", loaded)


@pytest.mark.parametrize(
    ("goal", "name", "field", "value", "shown"),
    [
        ("collectives_gain_ratio", "collectives-250mbit", "best_peer_gain", 0.3, "| 0.30 |"),
        ("adapt_phase_ratio", "adapt-slower-machine", "over_best", 1.2, "| 1.20 |"),
        ("minimd_error_ratio", "minimd-knee", "hybrid_error", -33.0, "| 0.33 |"),
        ("training_batches_gain_ratio", "training-placements", "node_gain", 0.9, "| 0.90 |"),
        ("onesided_computing_ratio", "onesided-shmem", "computing_ratio", 7.5, "| 7.50 |"),
        ("alltoall_efficiency_1gbit_ratio", "alltoall", "efficiency", 0.5, "| 0.50 |"),
    ],
)
def test_a_worse_value_in_any_setting_is_the_one_that_is_said(monkeypatch, goal, name, field, value, shown):
    goal = goals.BY_NAME[goal]
    before = reached.row_of(goal)
    changed(monkeypatch, name, lambda result: [row.update({field: value}) for row in result["rows"]])
    assert shown in reached.row_of(goal) and shown not in before


def test_one_launch_meets_nothing_and_noise_neither(monkeypatch):
    goal = goals.BY_NAME["alltoall_efficiency_1gbit_ratio"]

    for value, met in ((0.9, goals.ONE_LAUNCH), (0.5, "no (one launch)"), (1.3, goals.NOISE)):

        def edit(result, value=value):
            result["launches"] = 1
            for row in result["rows"]:
                row["efficiency"] = value

        with monkeypatch.context() as patch:
            changed(patch, "alltoall", edit)
            assert f"| {met} |" in reached.row_of(goal)


def test_the_picture_of_the_readme_is_among_its_table():
    """One source for both: the worst of the picture's bars is in the row, and in the table of goals."""
    alone, tests = gains.picture()
    (row,) = [line for line in README.splitlines() if line.startswith("| collectives of 1 and 4 MiB")]
    least, most, tests_least, tests_most = map(float, re.findall(r"(\d\.\d\d) to (\d\.\d\d)", row)[0] +
                                               re.findall(r"(\d\.\d\d) to (\d\.\d\d)", row)[1])  # fmt: skip
    for found, low, high in ((alone, least, most), (tests, tests_least, tests_most)):
        assert low <= round(min(found), 2) and round(max(found), 2) <= high
    assert any("picture" in where for _, where, _ in reached.values("collectives_gain_ratio"))


def test_the_first_screen_says_when_not_to_use_it():
    """And what never ran on real hardware: README and the page alike."""
    first = "\n".join(README.splitlines()[:24])
    assert "(docs/when-not.md)" in first and "never run on real hardware" in first
    page = (ROOT / "docs" / "when-not.md").read_text()
    assert "Never run on real hardware" in page
    ways = ("MPIR_CVAR_ASYNC_PROGRESS", *progress.VARIABLES["openmpi"], "`MPI_Test`", "progress by themselves",
            "service's core to a rank")  # fmt: skip
    for way in ways:
        assert way in page


def test_what_an_mpis_own_thread_is_said_to_hide_is_what_was_measured():
    """By `offpath plan`, README, the guide and the pages: as well as Offpath or not."""
    found = measured.load("progress-threads")
    gains_of: dict[str, list[float]] = {}
    for row in found["rows"]:
        best = min(row[f"{peer}_ms"] for peer in ("host", "thread", "yield"))
        assert row["unchanged_gain"] == pytest.approx(best / row["offpath_ms"], abs=6e-3)
        assert row["gain"] == pytest.approx(row["host_ms"] / row["offpath_ms"], abs=6e-3)
        assert row["tests_gain"] == pytest.approx(row["tests_ms"] / row["offpath_ms"], abs=6e-3)
        gains_of.setdefault(row["collective"], []).append(row["unchanged_gain"])
    assert {name for name, gain in gains_of.items() if min(gain) < 1.05} == set(progress.HIDDEN["openmpi"])
    guide = (ROOT / "docs" / "guide-mpi.md").read_text()
    for text in (README, guide, (ROOT / "docs" / "performance" / "progress-threads.md").read_text()):
        assert progress.setting("openmpi") in text
    assert f"hides {' and '.join(', '.join(progress.HIDDEN['openmpi']).rsplit(', ', 1))} as well" in guide
    assert not any("everything that leaves the program unchanged" in text for text in (README, guide, *TEXTS))


def test_rows_of_a_group_are_one():
    rows = [
        {"size": "1 MiB", "mpi": "A", "gain": 1, "async": None},
        {"size": "1 MiB", "mpi": "B", "gain": 2, "async": 3},
        {"size": "4 MiB", "mpi": "A", "gain": 4, "async": None},
    ]
    assert measured.grouped(rows, ["size"]) == [
        {"size": "1 MiB", "mpi": ["A", "B"], "gain": [1, 2], "async": [3]},
        {"size": "4 MiB", "mpi": ["A"], "gain": [4], "async": None},
    ]


def test_cells_are_made_of_templates():
    row = {"a": measured.Number("1.50"), "b": None, "c": measured.Number("-3"), "d": measured.Number("12000"),
           "e": [measured.Number("1"), measured.Number("2.0")]}  # fmt: skip
    assert measured.cell("{a}[ ({b:+}%)]", row) == "1.50"
    assert measured.cell("{a}[ ({c:+}%)]", row) == "1.50 (-3%)"
    assert measured.cell("{d:,}, {e}", row) == "12,000, 1, 2.0"
    assert measured.cell("{b}", row) == "-"
