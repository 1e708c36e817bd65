# SPDX-License-Identifier: BSD-3-Clause
"""Blocks that go to another node compressed: programs find what they expect, and what was saved is said."""

from conftest import LIMIT_S, requires_root
from offpath import mpis
from offpath.closing_line import closing_line
from offpath.paths import paths

pytestmark = requires_root


def _saved(result):
    assert result.returncode == 0 and "verified: yes" in result.stdout, result.stderr
    assert all(rank["failed_count"] == 0 for rank in result.stats), result.stats
    assert "% saved)" in closing_line(result.stats), result.stats
    plain, wire = (sum(rank[name] for rank in result.stats) for name in ("coded_bytes", "wire_bytes"))
    assert 0 < wire < plain, result.stats


def test_collectives_and_messages_arrive_as_they_were(lab):
    solver = [str(paths().app("halo3d", mpis.MPICH)), "--points", "64", "--variables", "4", "--sweeps", "20"]
    env = {"OFFPATH_POLICY": "*:host,send:4K-inf:nodes=2:dpu", "OFFPATH_COMPRESS": "lz4:shuffle=8"}
    _saved(lab.mpirun(mpis.MPICH, 1, solver, offload=True, env=env, timeout=LIMIT_S))
    transform = [str(paths().app("fft3d", mpis.OPENMPI)), "--n", "64", "--repeats", "2"]
    env = {"OFFPATH_POLICY": "*:dpu", "OFFPATH_COMPRESS": "zstd:shuffle=8"}
    _saved(lab.mpirun(mpis.OPENMPI, 2, transform, offload=True, env=env, timeout=LIMIT_S))
