# SPDX-License-Identifier: BSD-3-Clause
"""`offpath demo` on a tiny grid: what it writes and says, not what it gains."""

import json
import re

import pytest
from bench_support import assert_self_contained, prefix_with
from conftest import assert_one_line_error, offpath, requires_root, succeeded
from offpath.bench import demo_report
from offpath.pages import report
from offpath.plan import calibrate_command, machine
from rich.progress import Progress

TINY = ["--n", "12", "--work", "1", "--seconds", "0.01", "--pairs", "1"]


prefix = prefix_with("apps", "fft3d")


def check(out, kinds):
    result = json.loads((out / "result.json").read_text())
    assert result.keys() >= {"verified", "speedup", "host_s", "offload_s", "mpi", "meta", "results"}
    assert result["verified"] is True
    assert result["speedup"] == min(each["speedup"] for each in result["results"])
    assert result["speedup"] == result["host_s"] / result["offload_s"]
    assert [each["mpi"] for each in result["results"]] == kinds
    for each in result["results"]:
        assert [run["mode"] for run in each["runs"]] == ["host", "dpu"]
        assert set(demo_report.TABLE_ROWS) <= set(each["rows"]["host"]) == set(each["rows"]["dpu"])
    assert_self_contained((out / "demo.html").read_text())
    return result


@pytest.mark.machine
def test_on_loopback_with_both_mpis(prefix, tmp_path):
    result = succeeded(offpath("demo", *TINY, "--loopback", "--out", str(tmp_path), env=prefix))
    written = check(tmp_path, ["openmpi", "mpich"])
    assert written["meta"]["place"] == "loopback" and "loopback" in result.stderr
    # Where there is no terminal, whatever takes long has a line. Of runs it says how many are left, and for how long.
    assert "measuring how fast this machine computes ..." in result.stderr, result.stderr
    runs = re.findall(r"run (\d) of 4: [\w ]+ with(?:out)? Offpath(, about \d+ s left)? \.\.\.", result.stderr)
    assert [(number, bool(left)) for number, left in runs] == [(str(n), n > 1) for n in range(1, 5)], result.stderr
    assert written["results"][0]["checksum"] == written["results"][1]["checksum"]
    for row in demo_report.TABLE_ROWS:
        assert row in result.stdout
    # The stand-in library offloads nothing, and noise must not be sold as a gain
    assert "Nothing to claim" in result.stdout and "Nothing was offloaded" in result.stdout


@pytest.mark.machine
def test_what_was_measured_is_shown_where_the_disk_is_full(prefix, tmp_path):
    (tmp_path / "result.json").symlink_to("/dev/full")
    result = offpath("demo", *TINY, "--mpi", "mpich", "--loopback", "--out", str(tmp_path), env=prefix)
    assert result.returncode == 1 and "disk full" in result.stderr, result.stderr
    assert all(row in result.stdout for row in demo_report.TABLE_ROWS), result.stdout


def test_what_was_calibrated_is_shown_where_the_disk_is_full(monkeypatch, capsys):
    monkeypatch.setattr(calibrate_command, "built", lambda file: file)
    monkeypatch.setattr(calibrate_command.fitting, "calibrate", lambda *given: machine.default())
    with pytest.raises(OSError, match="No space left"):
        calibrate_command.app(["--loopback", "--mpi", "mpich", "-o", "/dev/full"], standalone_mode=False)
    assert "network.latency_ns" in capsys.readouterr().out


@requires_root
def test_in_a_lab(prefix, tmp_path):
    result = succeeded(offpath("demo", *TINY, "--mpi", "mpich", "--rate", "1gbit", "--out", str(tmp_path), env=prefix))
    assert "bringing up two nodes, 1000 Mbit/s ..." in result.stderr, result.stderr
    meta = check(tmp_path, ["mpich"])["meta"]
    assert meta["place"] == "lab" and meta["rate"] == "1gbit" and meta["nodes"] == 2


def test_what_is_left_is_said(monkeypatch, capsys):
    """By a clock that goes on by 7 s at each look."""
    from offpath.bench import demo

    clock = iter(range(100, 1000, 7))
    monkeypatch.setattr(demo.time, "monotonic", lambda: next(clock))
    watch = demo._Watch(Progress(disable=True), 3)
    for _ in range(3):
        watch.run("MPICH")
        watch.advance()
    assert re.findall(r"run .*", capsys.readouterr().err) == [
        "run 1 of 3: MPICH ...", "run 2 of 3: MPICH, about 28 s left ...", "run 3 of 3: MPICH, about 10 s left ...",
    ]  # fmt: skip


def test_a_different_result_is_found_out():
    from offpath.bench.demo import _summary

    def run(mode, checksum, verified=True):
        times = {row: {"avg": 1.0} for row in demo_report.TABLE_ROWS}
        return {
            "mode": mode, "checksum": checksum, "verified": verified, "times_s": times, "offloaded_count": 1,
            "service_cpu_ns": 0, "reasons": [],
        }  # fmt: skip

    assert _summary("mpich", [run("host", "a"), run("dpu", "a")])["verified"]
    assert not _summary("mpich", [run("host", "a"), run("dpu", "b")])["verified"]
    assert not _summary("mpich", [run("host", "a"), run("dpu", "a", verified=False)])["verified"]


def test_the_rate_makes_communication_the_wanted_share():
    from offpath.bench.demo import COMMUNICATION_SHARE, _rate_for

    compute_s, sent = 1.8, 34_000_000
    wire_s = 8 * sent / _rate_for(COMMUNICATION_SHARE, compute_s, sent)
    assert abs(wire_s / (wire_s + compute_s) - COMMUNICATION_SHARE) < 0.01


def test_page_escapes_what_it_is_given():
    html = report.page("<b>", "&", [report.card("<i>", report.table(["<u>"], [["<s>"]]), report.facts({"<p>": "<q>"}))])
    for tag in ("<b>&", "<i>&", "<u>", "<s>", "<p>", "<q>"):
        assert tag not in html.split("</style>")[1].replace('<p class="lead">', "")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--mpi", "lam"], "lam"),
        (["--rate", "quick"], "quick"),
        (["--out", "/proc/nowhere"], "/proc/nowhere"),
        (["--n", "2"], "n"),
    ],
)
def test_refuses_bad_arguments(prefix, arguments, word):
    assert_one_line_error(offpath("demo", *arguments, env=prefix), word, status=2)
