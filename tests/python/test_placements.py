# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench collectives --placement`: a small real run. What it makes of results: test_bench_collectives.py."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from bench_support import assert_self_contained, program
from conftest import LIMIT_S, offpath, requires_root, succeeded
from offpath.base.paths import paths
from offpath.lab import Lab, machines

TOKEN_BYTES = 32


@pytest.mark.parametrize("options", [[], ["--share"]])
def test_a_service_for_agents_shares_its_cores_when_told(tmp_path, options):
    """Then it never spins, as one does that has cores of its own."""
    succeeded(subprocess.run(
        [str(paths().service), "--for-agents", *options], input=bytes(range(TOKEN_BYTES)), capture_output=True,
        env=os.environ | {"OFFPATH_RUNTIME_DIR": str(tmp_path)}, timeout=LIMIT_S,
    ))  # fmt: skip
    found = {}
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_text().split("\0")
        except OSError:  # it has ended meanwhile
            continue
        if any(word.startswith(str(tmp_path)) for word in words) and words[0] == "offpathd":
            found[int(file.parent.name)] = words
    for process in found:
        os.kill(process, signal.SIGKILL)
    (words,) = found.values()
    assert ("--share" in words) == bool(options), words


def test_dpus_of_a_lab_that_have_their_nodes_cores_share_them():
    plan = Lab(nodes=2, dpus=1).plan
    assert machines.entry(plan, plan.dpus[0], "enter", "offpathd").endswith(" --share")


@requires_root
def test_placements(tmp_path):
    program("bench", "openmpi", "collectives")
    file, page = tmp_path / "a.json", tmp_path / "a.html"
    result = succeeded(offpath(
        "bench", "collectives", "--placement", "cores,dpu,node", "--mpi", "openmpi", "--collectives", "ialltoall",
        "--sizes", "4K", "--runs", "1", "--repeats", "1", "--peers", "host", "--policy", "*:dpu", "--rate", "1gbit",
        "--link-rate", "2gbit", "--json", str(file), "--html", str(page),
    ))  # fmt: skip
    written = json.loads(file.read_text())
    rows = {row["placement"]: row for row in written["rows"]}
    assert list(rows) == [None, "cores", "dpu", "node"] and all(row["verified"] for row in rows.values())
    assert written["meta"]["placements"] == ["cores", "dpu", "node"] and written["meta"]["link_rate"] == "2gbit"
    for place, row in rows.items():
        assert (row["agent_cpu_ns"] > 0) == (place in ("dpu", "node")), place
        assert (row["service_cpu_ns"] > 0) == (place is not None), place
        assert {"t_pure_ns", "t_total_ns", "efficiency", "host_cpu_ns_per_byte"} <= row.keys()
    far = rows["dpu"]
    on_host = far["host_cpu_ns"] + far["agent_cpu_ns"] - far["compute_cpu_ns"]
    assert far["host_cpu_ns_per_byte"] == on_host / (2 * 4096)
    assert far["service_cpu_ns_per_byte"] == far["service_cpu_ns"] / (2 * 4096)
    lines = [line.split() for line in result.stdout.splitlines()]
    places = [words[3] for words in lines if words[:3] == ["ialltoall", "4", "KiB"]]
    prices = [place for place in places if place.startswith("Offpath")]
    assert len(prices) == 3 and [place for place in places if place not in prices] == ["cores", "dpu", "node"]
    assert_self_contained(page.read_text())
