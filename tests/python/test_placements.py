# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench collectives --placement`: a small real run. What it makes of results: test_bench_collectives.py."""

import json

from bench_support import assert_self_contained, program
from conftest import offpath, requires_root


@requires_root
def test_placements(tmp_path):
    program("bench", "openmpi", "collectives")
    file, page = tmp_path / "a.json", tmp_path / "a.html"
    result = offpath(
        "bench", "collectives", "--placement", "cores,dpu,node", "--mpi", "openmpi", "--collectives", "ialltoall",
        "--sizes", "4K", "--runs", "1", "--repeats", "1", "--peers", "host", "--policy", "*:dpu", "--rate", "1gbit",
        "--link-rate", "2gbit", "--json", str(file), "--html", str(page),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
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
    assert [words[3] for words in lines if words[:3] == ["ialltoall", "4", "KiB"]] == ["cores", "dpu", "node"]
    assert_self_contained(page.read_text())
