# SPDX-License-Identifier: BSD-3-Clause
"""Blocks that go to another node compressed: programs find what they expect, and what was saved is said."""


import pytest
from conftest import LIMIT_S, captured, requires_root
from offpath.base.paths import paths
from offpath.launch import mpis
from offpath.launch.closing_line import closing_line

pytestmark = requires_root


def _saved(result):
    assert result.returncode == 0 and "verified: yes" in result.stdout, result.stderr
    assert all(rank["failed_count"] == 0 for rank in result.stats), result.stats
    assert "% saved" in closing_line(result.stats), result.stats
    plain, wire = (sum(rank[name] for rank in result.stats) for name in ("coded_bytes", "wire_bytes"))
    assert 0 < wire < plain, result.stats


def test_collectives_and_messages_arrive_as_they_were(lab):
    solver = [str(paths().app("halo3d", mpis.MPICH)), "--points", "64", "--variables", "4", "--sweeps", "20"]
    env = {"OFFPATH_POLICY": "*:host,send:4K-inf:nodes=2:dpu", "OFFPATH_COMPRESS": "lz4:shuffle=8"}
    _saved(lab.mpirun(mpis.MPICH, 1, solver, offload=True, env=env, timeout=LIMIT_S))
    transform = [str(paths().app("fft3d", mpis.OPENMPI)), "--n", "64", "--repeats", "2"]
    env = {"OFFPATH_POLICY": "*:dpu", "OFFPATH_COMPRESS": "zstd:shuffle=8"}
    _saved(lab.mpirun(mpis.OPENMPI, 2, transform, offload=True, env=env, timeout=LIMIT_S))


def test_what_decides_by_itself_harms_nothing(lab):
    """Puts, gets, messages and collectives, of which some are compressed and some are not."""
    env = {"OFFPATH_POLICY": "*:dpu,send:4K-inf:nodes=2:dpu,window:dpu", "OFFPATH_COMPRESS": "auto"}
    programs = (
        ["fft3d", "--n", "48", "--repeats", "2"],
        ["halo3d", "--points", "64", "--variables", "4", "--sweeps", "10"],
        ["bspmm", "--tile", "64", "--tiles", "8", "--repeats", "1", "--check"],
    )
    for name, *options in programs:
        program = [str(paths().app(name, mpis.OPENMPI)), *options]
        result = lab.mpirun(mpis.OPENMPI, 1, program, offload=True, env=env, timeout=LIMIT_S)
        assert result.returncode == 0, (name, result.stdout, result.stderr)
        assert all(rank["failed_count"] == 0 for rank in result.stats), (name, result.stats)


def test_numbers_lose_no_more_than_was_allowed(lab):
    """And nothing else loses anything: reductions, bytes, a communicator of another wish."""
    program = [str(paths().prefix / "tests" / "interpose" / mpis.OPENMPI / "lossy"), "1e-5"]
    env = {"OFFPATH_POLICY": "*:dpu,send:4K-inf:nodes=2:dpu,window:dpu"}
    for codec in _lossy_codecs():
        wish = {"OFFPATH_COMPRESS": f"{codec}:abs=1e-5"}
        result = lab.mpirun(mpis.OPENMPI, 2, program, offload=True, env=env | wish, timeout=LIMIT_S)
        assert result.returncode == 0 and "WRONG" not in result.stdout, result.stdout + result.stderr
        for rank in result.stats:
            assert 0 < rank["lossy_bytes"] < rank["coded_bytes"], rank
            assert 0 < rank["largest_error"] <= 1e-5, rank
        assert "lost at most" in closing_line(result.stats), result.stats


def _lossy_codecs():
    """Those that this build has."""
    said = captured([paths().tool("offpath-codecs"), "--codecs"], check=True)
    lossy = [codec for codec in ("zfp", "sz3") if codec in said.stdout.split()]
    if not lossy:
        pytest.skip("this build has neither zfp nor SZ3")
    return lossy
