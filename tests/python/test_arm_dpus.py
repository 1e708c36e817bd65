# SPDX-License-Identifier: BSD-3-Clause
"""DPUs of a lab, machines of their own, whose processors are another architecture: Arm, emulated (make aarch64)."""

import platform
import re

import openmp_support
import pytest
from conftest import ROOT, requires_root
from openmp_support import requires
from test_lab_dpus import DPUFILE, at_head, lines, with_starters, work  # noqa: F401

OFFPATHD = str(ROOT / "tests" / "api" / "aarch64.sh")
ARM = re.sub(r"arch=\S+", "arch=aarch64", DPUFILE)
pytestmark = [requires_root, pytest.mark.nightly, requires(openmp_support.missing_for("aarch64"))]


@pytest.fixture(scope="module")
def cluster(work):  # noqa: F811
    with with_starters(work, [OFFPATHD, "--for-agents-command", f"{OFFPATHD} --for-agents"]) as lab:
        (work / "dpus.txt").write_text(ARM)
        yield lab


def test_the_three_steps(cluster, work):  # noqa: F811
    """With ranks of this machine's architecture: program, agent and service are two kinds of machine."""
    for command in lines("offpath"):
        result = at_head(cluster, work, command)
        assert result.returncode == 0, (command, result.stdout, result.stderr)
        if "check" in command:
            assert result.stdout.count(" aarch64") == 2, result.stdout
        if "run" in command:
            assert re.search(r"2 nodes .*: (\d+) collectives, \1 offloaded .* 0 native", result.stderr), result.stderr


def test_the_list_says_another_architecture(cluster, work):  # noqa: F811
    (work / "changed.txt").write_text(ARM.replace("aarch64", platform.machine()))
    result = at_head(cluster, work, "offpath dpus check changed.txt")
    assert result.returncode == 1 and "aarch64" in result.stdout + result.stderr, result
