# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench alltoall`: what it writes, not how fast anything is."""

import json

import pytest
from bench_support import assert_self_contained, prefix_with
from conftest import assert_one_line_error, offpath, requires_root, succeeded

ROW_KEYS = {
    "mpi", "mode", "bytes_per_peer", "ranks", "t_pure_ns", "t_compute_ns", "t_total_ns", "efficiency", "host_cpu_ns",
    "service_cpu_ns", "runs", "collective", "peer", "bytes",
}  # fmt: skip


prefix = prefix_with("bench", "collectives")


def check_result(result, kinds, runs):
    assert set(result) == {"meta", "rows", "checks"} and result["checks"] == []  # too small for any
    meta = result["meta"]
    for key in ("hardware", "cores", "rate", "mpi_versions", "seed", "commit", "nodes", "ppn", "date"):
        assert key in meta, key
    assert list(meta["mpi_versions"]) == kinds
    assert [(row["mpi"], row["mode"]) for row in result["rows"]] == [(k, m) for k in kinds for m in ("host", "dpu")]
    for row in result["rows"]:
        assert row.keys() >= ROW_KEYS
        assert row["runs"] == runs and row["ranks"] == 2 and row["verified"]
        assert row["bytes"] == 2 * row["bytes_per_peer"] == 8192
        assert row["efficiency"] == max(row["t_pure_ns"], row["t_compute_ns"]) / row["t_total_ns"]
    for host, dpu in zip(result["rows"][::2], result["rows"][1::2], strict=True):
        assert host["work_iterations"] == dpu["work_iterations"]


@pytest.mark.machine
def test_command_writes_json_and_page(prefix, tmp_path):
    files = tmp_path / "a.json", tmp_path / "new" / "a.html"
    result = succeeded(offpath(
        "bench", "alltoall", "--loopback", "--mpi", "mpich", "--sizes", "4K", "--runs", "2", "--repeats", "2", "--json",
        str(files[0]), "--html", str(files[1]), env=prefix,
    ))  # fmt: skip
    assert "4 KiB" in result.stdout and result.stdout.splitlines()[-1].startswith("checks: none")
    assert "loopback" in result.stderr
    written = json.loads(files[0].read_text())
    check_result(written, ["mpich"], runs=2)
    assert written["meta"]["place"] == "loopback"
    assert_self_contained(files[1].read_text())


@requires_root
def test_command_in_a_lab(prefix, tmp_path):
    file = tmp_path / "a.json"
    succeeded(offpath(
        "bench", "alltoall", "--mpi", "mpich", "--rate", "1gbit", "--sizes", "4K", "--runs", "1", "--repeats", "2",
        "--json", str(file), env=prefix,
    ))  # fmt: skip
    written = json.loads(file.read_text())
    check_result(written, ["mpich"], runs=1)
    assert written["meta"]["hardware"] == "emulated" and written["meta"]["rate"] == "1gbit"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--mpi", "lam"], "lam"),
        (["--sizes", "1X"], "1X"),
        (["--sizes", ""], "size"),
        (["--sizes", "1024M"], "1 GiB in all"),
        (["--rate", "quick"], "quick"),
        (["--collective", "bcast"], "bcast"),
        (["--json", "/proc/nowhere/a.json"], "/proc/nowhere"),
    ],
)
def test_command_refuses_bad_arguments(prefix, arguments, word):
    assert_one_line_error(offpath("bench", "alltoall", *arguments, env=prefix), word, status=2)
