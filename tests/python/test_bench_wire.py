# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench wire` and the program that it runs on two nodes."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import assert_one_line_error, captured, eventually, offpath, requires_root
from offpath.base.paths import paths
from offpath.bench import wire_cost
from offpath.bench.kit import trust
from offpath.places.comparison import LoopbackPlace


def run_pair(*options):
    """Both ends on this machine's loopback; the output of the one that connects."""
    listens = [str(paths().tool("offpath-wire")), "--listen", "127.0.0.1:0", *options]
    with subprocess.Popen(listens, stdout=subprocess.PIPE, text=True) as listener:
        port = listener.stdout.readline().removeprefix(wire_cost.LISTENING).strip()
        connects = [
            str(paths().tool("offpath-wire")),
            "--connect",
            f"127.0.0.1:{port}",
            *options,
        ]
        done = captured(connects, timeout=60)
    assert (listener.returncode, done.returncode) == (0, 0), done.stderr
    return json.loads(done.stdout)


def test_who_computes_is_waited_for_where_others_have_the_core():
    """Before, no work done alone made every share of it meaningless. The first wait of both is for each other."""
    program, options = str(paths().tool("offpath-wire")), ("--sizes", "65536", "--milliseconds", "20")
    talks = {"stdout": subprocess.PIPE, "text": True}
    with contextlib.ExitStack() as started:

        def start(*arguments):
            process = started.enter_context(subprocess.Popen([program, *arguments, *options], **talks))
            started.callback(process.kill)
            return process

        listener = start("--listen", "127.0.0.1:0")
        port = listener.stdout.readline().removeprefix(wire_cost.LISTENING).strip()
        listener.send_signal(signal.SIGSTOP)
        connector = start("--connect", f"127.0.0.1:{port}")
        computes = int(eventually(Path(f"/proc/{connector.pid}/task/{connector.pid}/children").read_text))
        os.kill(computes, signal.SIGSTOP)
        listener.send_signal(signal.SIGCONT)
        time.sleep(0.3)  # the time in which it is to work alone is over
        os.kill(computes, signal.SIGCONT)
        (row,) = json.loads(connector.communicate(timeout=60)[0])
    assert_makes_sense(row)


def assert_makes_sense(row):
    assert row["wire_ns"] > 0 and row["beside_ns"] > 0
    assert all(0 <= row[name] for name in wire_cost.SHARES)
    assert 0 < row["reachable_efficiency"]


def test_program_measures_each_size():
    rows = run_pair("--sizes", "1,65536,1000000", "--milliseconds", "20")
    assert [row["bytes"] for row in rows] == [1, 65536, 1000000]
    for row in rows:
        assert_makes_sense(row)
        assert row["bits_per_s"] == pytest.approx(8e9 * row["bytes"] / row["wire_ns"])


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ([], ["--listen", "--connect"]),
        (["--listen", "nowhere"], ["nowhere", "10.0.0.1:0"]),
        (["--listen", "127.0.0.1:99999"], ["127.0.0.1:99999"]),
        (["--connect", "127.0.0.1:1"], ["connect"]),
        (["--listen", "127.0.0.1:0", "--sizes", "0"], ["--sizes"]),
        (["--listen", "127.0.0.1:0", "--core", "1023"], ["core"]),
    ],
)
def test_program_refuses(arguments, expected):
    done = captured([str(paths().tool("offpath-wire")), *arguments], timeout=60)
    assert done.returncode != 0 and len(done.stderr.strip().splitlines()) == 1
    for word in expected:
        assert word in done.stderr


@requires_root
def test_command_writes_a_row_for_each_rate_and_size(tmp_path):
    file = tmp_path / "wire.json"
    done = offpath("bench", "wire", "--rate", "500mbit,1gbit", "--sizes", "64K,256K", "--runs", "1",
                   "--milliseconds", "20", "--json", str(file))  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(file.read_text())["rows"]
    assert [(row["rate_bits_per_s"], row["bytes"]) for row in rows] == [
        (rate, size) for rate in (500_000_000, 1_000_000_000) for size in (65536, 262144)
    ]
    for row in rows:
        assert_makes_sense(row)
        assert row["wire_ns_min"] <= row["wire_ns"] <= row["wire_ns_max"]
    assert "reachable" in done.stdout and "1000 Mbit/s" in done.stdout


def test_command_refuses(tmp_path):
    assert_one_line_error(offpath("bench", "wire", "--rate", "fast"), "fast", "1gbit")
    assert_one_line_error(offpath("bench", "wire", "--sizes", "many"), "many")
    assert_one_line_error(offpath("bench", "wire", "--json", str(tmp_path)), "--json")


def test_shown_beside_results(capsys):
    trust.show_reachable({"reachable_efficiency": {"1M": 0.93, "4M": 0.9}})
    assert "0.93 at 1M, 0.90 at 4M" in capsys.readouterr().out
    trust.show_reachable({})
    trust.show_reachable({"reachable_efficiency": {}})
    assert capsys.readouterr().out == ""


def test_nothing_is_reachable_without_a_wire():
    assert wire_cost.reachable(LoopbackPlace(2), [1 << 20]) == {}
