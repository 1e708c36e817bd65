# SPDX-License-Identifier: BSD-3-Clause
"""Bad input: one line that says what is wrong and what to do, an exit status that is not 0, nothing left behind."""

import json
import os
import re
import subprocess

import pytest
from conftest import LIMIT_S, ROOT, assert_one_line_error, captured, offpath, requires_root, succeeded
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.launch import checks
from offpath.places import comparison


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--bogus"], ["--bogus", "offpath --help"]),
        (["bogus"], ["bogus", "offpath --help"]),
        (["run", "--bogus", "--", "true"], ["--bogus", "offpath run --help"]),
        (["run"], ["COMMAND", "offpath run --help"]),
        (["run", "--workers", "0", "--", "true"], ["--workers"]),
        (["run", "--log", "loud", "--", "true"], ["loud", "debug"]),
        (["run", "--blocking", "bcast,gather", "--", "true"], ["'gather'", "allreduce"]),
        (["run", "--compress", "gzip", "--", "true"], ["'gzip'", "zstd:level=3,shuffle=8"]),
        (["run", "--stats", "/no/such/folder/x", "--", "true"], ["/no/such/folder"]),
        (["lab", "up", "--rate", "fast"], ["'fast'", "250mbit"]),
        (["lab", "up", "--rate", "0mbit"], ["'0mbit'", "250mbit"]),
        (["lab", "up", "--rate=-5mbit"], ["-5mbit", "250mbit"]),
        (["lab", "up", "--rate", "200gbit"], ["the lab's 1mbit to 100gbit"]),
        (["plan", "scale", "--link", "2tbit"], ["1kbit to 1.6tbit"]),
        (["plan", "scale", "--link", "900bit"], ["1kbit to 1.6tbit"]),
        (["plan", "scale", "--dpu-cores", "5000"], ["--dpu-cores", "5000"]),
        (["plan", "no-file", "--dpu-cores", "5000"], ["--dpu-cores", "5000"]),
        (["report", "no-file", "--text", "--otf2", "folder"], ["--otf2", "--text"]),
        (["report", "no-file", "-o", "x", "--otf2", "folder"], ["--otf2", "--output"]),
        (["lab", "up", "--nodes", "0"], ["0 nodes", "1 to 64"]),
        (["lab", "up", "--nodes", "1000"], ["1000 nodes", "1 to 64"]),
        (["lab", "up", "--nodes", "two"], ["--nodes"]),
        (["lab", "up", "--mtu", "10"], ["MTU", "9000"]),
        (["lab", "up", "--dpu-slowdown", "0.5"], ["0.5"]),
        (["lab", "up", "--dpu-slowdown", "nan"], ["nan"]),
        (["lab", "up", "--cores-per-node", "4096"], ["4096 cores"]),
        (["lab", "up", "--name", "../etc"], ["'../etc'"]),
        (["lab", "status", "nosuchlab"], ["nosuchlab", "lab up"]),
        (["info", "/no/such/program"], ["/no/such/program"]),
        (["bench", "files", "--folder", "/proc/self"], ["/proc/self", "--folder"]),
        (["bench", "files", "--writers", "5"], ["5 of 2 ranks", "--writers"]),
        (["train-advice", "no-file", "--slower", "nan"], ["--slower", "nan is not a number"]),
        (["plan", "balance", "--report", "no-file", "--piece-ms", "nan"], ["--piece-ms", "nan is not a number"]),
        (["split", "--reduction-us", "inf"], ["--reduction-us", "inf is not a number"]),
        (["tune", "--nodes", "2,99"], ["--nodes 2,99", "from 1 to 64"]),
    ],
)
def test_bad_input_is_one_line(arguments, words):
    assert_one_line_error(offpath(*arguments), *words)


@pytest.mark.parametrize("content", [None, "folder", b"\xff\xfe\0", b'{"a": [', b"7", b"{}", b"[" * 100_000])
@pytest.mark.parametrize(
    "arguments",
    [
        ["plan"], ["plan", "scale", "--nodes", "2", "--machine"], ["plan", "balance", "--report"],
        ["plan", "minimd", "--dpu", "x", "--host"], ["report"], ["train-advice"], ["policy", "import"],
        ["split", "--weights"],
    ],
)  # fmt: skip
def test_a_file_that_holds_something_else_is_one_line(arguments, content, tmp_path):
    file = tmp_path / "file.json"
    if content == "folder":
        file.mkdir()
    elif content is not None:
        file.write_bytes(content)
    unread = content in (None, "folder")
    assert_one_line_error(offpath(*arguments, str(file)), str(file), "cannot be read" if unread else "is no ")


def test_a_number_that_the_service_refuses_is_refused_before_the_run():
    result = offpath("run", "--", "true", env={"OFFPATH_SERVICE_WORKERS": "many"})
    assert_one_line_error(result, "OFFPATH_SERVICE_WORKERS='many'", "from 1 to 64")
    assert offpath("run", "--off", "--", "true", env={"OFFPATH_SERVICE_WORKERS": "many"}).returncode == 0


def test_the_numbers_are_those_of_the_service():
    source = (ROOT / "src" / "service" / "command_line.cpp").read_text().replace("uint64_t{1}", "1")
    found = re.findall(r'Environment::number\(\s*"(\w+)",\s*[^,]+,\s*([\d <]+),\s*([\d <]+)\)', source)
    ranges = {name: (eval(low), eval(high)) for name, low, high in found}
    assert {name: range for name, range in ranges.items() if not name.endswith("_TIMEOUT_MS")} == checks.NUMBERS


def test_the_service_refuses_options_that_it_does_not_know():
    result = captured([paths().service, "--bogus"])
    assert result.returncode == 2 and result.stdout == "" and result.stderr.count("\n") == 1, result
    assert "--bogus" in result.stderr and "--help" in result.stderr


def test_a_trace_that_cannot_be_is_refused(tmp_path):
    assert_one_line_error(offpath("run", "--trace", "/", "--", "true"), "is a folder", "Name a file")
    assert_one_line_error(offpath("run", "--stats", str(tmp_path), "--", "true"), "is a folder", "Name a file")
    assert_one_line_error(offpath("run", "--metrics", f"{tmp_path}/", "--", "true"), "is a folder", "Name a file")


@pytest.mark.parametrize("option", [["--trace", "t.json"], ["--summary"]])
def test_a_run_without_offpath_records_nothing_and_says_so(option, tmp_path):
    result = offpath("run", "--off", *option, "--", "true", cwd=tmp_path)
    assert result.returncode == 0 and f"{option[0]} records nothing with --off" in result.stderr, result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_made_is_one_line():
    # A folder that takes none, even of root, and a name that is too long.
    for name, words in (("/proc/page.html", "cannot be written"), ("x" * 300, "cannot be used")):
        ended = offpath("plan", "scale", "--nodes", "2", "--html", name)
        assert_one_line_error(ended, name, words)


def test_any_name_and_any_terminal_will_do(tmp_path):
    """A file whose name is no text, a terminal without the letters, and none at all."""
    odd = tmp_path / os.fsdecode(b"\xff.jsonl")
    head = {"format": "offpath-profile", "version": 1, "rank": 0, "ranks": 1, "host": "n", "mpi": "mpich"}
    odd.write_text(json.dumps(head) + "\n" + json.dumps({"end_ns": 1000}) + "\n")
    page = tmp_path / "page.html"
    for env in ({}, {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        done = succeeded(offpath("plan", str(odd), "--html", str(page), env=env))
        assert "makes no difference" in done.stdout and ".jsonl" in page.read_text()
    shut = subprocess.run(f"{ROOT}/offpath info >&-", shell=True, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
    assert (shut.returncode, shut.stderr) == (0, "")


def test_nothing_asked_for_is_help():
    result = offpath()
    assert result.returncode == 0 and "Usage: offpath" in result.stdout and result.stderr == ""


def test_without_root_a_lab_is_not_replaced_by_something_else(monkeypatch):
    """Minutes of figures that nobody asked for."""
    monkeypatch.setattr(comparison, "lab_is_possible", lambda: False)
    with pytest.raises(UserError, match="needs root .*--loopback"), comparison.place(2, 1, "1gbit", False):
        pass
    with comparison.place(2, 1, "1gbit", True) as where:
        assert where.meta["place"] == "loopback"


# What a benchmark is asked for so that it needs the lab. Those that have never a lab are not here.
OF_LABS = {
    "adapt": "", "alltoall": "", "amr": "", "bspmm": "", "collectives": "", "compression": "--rates 1gbit",
    "faults": "", "halo3d": "", "krylov": "--lab 2", "minimd": "--lab 2", "multicast": "", "onesided": "", "plan": "",
    "pt2pt": "", "scale": "--nodes 1,2", "tasks": "--labs 2x1", "training": "", "wire": "",
}  # fmt: skip
SUITE = ROOT / "python" / "offpath" / "bench" / "suite"
WITHOUT = {"files", "guest", "openmp", "worker"}
OF_NOBODY = {"HOME": "/nonexistent", "XDG_RUNTIME_DIR": "", "OFFPATH_PREFIX": ""}


@requires_root
@pytest.mark.grid(4)
@pytest.mark.parametrize("name", OF_LABS)
def test_without_root_a_benchmark_says_so_at_once(name, tmp_path):
    """One line, before it announces launches or measures anything."""
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if subprocess.run([*nobody, "test", "-r", ROOT / "offpath"]).returncode != 0:
        pytest.skip("other users do not see this tree. CI runs it")
    command = [*nobody, ROOT / "offpath", "bench", name, *OF_LABS[name].split()]
    here = os.environ | OF_NOBODY | {"TMPDIR": "/tmp"}
    result = captured(command, env=here, cwd="/")
    assert_one_line_error(result, "root")
    options = (SUITE / f"{name}.py").read_text()
    assert ("--loopback" in result.stderr) == ("asked.Loopback" in options), result.stderr


@requires_root
@pytest.mark.grid(2)
@pytest.mark.parametrize(
    "words", ["adapt", "amr", "bspmm", "faults", "halo3d", "krylov --lab 2", "minimd --lab 2", "scale --nodes 1,2"]
)
def test_a_rate_that_is_none_is_refused_before_anything_is_announced(words):
    assert_one_line_error(offpath("bench", *words.split(), "--rate", "9zbit"), "'9zbit' is not a link rate")


@pytest.mark.parametrize("words", [["--bogus"], ["--as-built", "--bogus"], ["/proc/none"]])
def test_a_wheel_asked_for_in_vain_is_refused_before_anything_is_fetched(words):
    result = captured([ROOT / "tools" / "wheel", *words])
    assert result.returncode == 1 and result.stdout == "" and result.stderr.count("\n") == 1, result
    assert result.stderr.startswith("wheel: ") and words[-1] in result.stderr


def test_no_benchmark_is_forgotten():
    assert {file.stem for file in SUITE.glob("[!_]*.py")} == OF_LABS.keys() | WITHOUT


def test_missing_program():
    assert_one_line_error(offpath("run", "--", "no-such-program"), "no-such-program", "not found", status=127)


def test_program_that_may_not_be_executed(tmp_path):
    (tmp_path / "data").write_text("x")
    assert_one_line_error(offpath("run", "--", str(tmp_path / "data")), "chmod +x", status=126)


def test_library_not_built(tmp_path):
    result = offpath("run", "--", "true", env={"OFFPATH_PREFIX": str(tmp_path)})
    assert_one_line_error(result, "liboffpath_mpi.so", "make build", status=2)


def test_prefix_that_does_not_exist():
    assert_one_line_error(offpath("run", "--", "true", env={"OFFPATH_PREFIX": "/no/such"}), "OFFPATH_PREFIX=/no/such")


@requires_root
def test_lab_that_is_not_up(lab_name):
    assert_one_line_error(offpath("lab", "down", lab_name), lab_name, "lab status")
    assert_one_line_error(offpath("lab", "run", "--name", lab_name, "--", "true"), lab_name, "lab up")


def test_launcher_without_python_environment(tmp_path):
    import shutil

    from conftest import ROOT

    shutil.copy(ROOT / "offpath", tmp_path / "offpath")
    result = captured([tmp_path / "offpath", "info"])
    assert_one_line_error(result, "make setup")
