# SPDX-License-Identifier: BSD-3-Clause
"""The tests of packaging/reframe, run by ReFrame of PyPI: on this machine, on two nodes of a lab, as jobs of Slurm."""

import json
import os
import re
import subprocess

import pytest
import slurm_support
from conftest import AS_ROOT, LIMIT_S, ROOT, captured, offpath, requires_root
from offpath.lab import slurm
from offpath.places import comparison

SUITE = ROOT / "packaging" / "reframe"
CONFIG = (SUITE / "config.py").read_text()
GUIDE = (ROOT / "docs" / "guide-administration.md").read_text()
ON_TWO_CORES = ("-S", "OffpathGain.share=1", "-S", "OffpathGain.size=1M")


def test_the_guide_names_what_can_be_set():
    rows = re.findall(r"^    (\w+) = variable\(", (SUITE / "offpath_checks.py").read_text(), re.MULTILINE)
    assert len(rows) > 6 and [name for name in rows if f"`{name}`" not in GUIDE] == []


@pytest.fixture(scope="module")
def reframe(tmp_path_factory):
    venv = tmp_path_factory.mktemp("reframe") / "venv"
    subprocess.run(["/usr/bin/python3", "-m", "venv", venv], check=True)
    [install] = re.findall(r"^    (pip install reframe.*)$", GUIDE, re.MULTILINE)
    version = re.search(r"ReFrame ([\d.]+) of PyPI", (ROOT / "packaging" / "README.md").read_text())[1]
    subprocess.run([venv / "bin" / "pip", *install.split()[1:], "--quiet", f"reframe-hpc=={version}"], check=True)
    return venv / "bin" / "reframe"


def command(reframe, folder, system, *options, config=CONFIG):
    (folder / "config.py").write_text(config)
    words = [reframe, "-C", "config.py", "-c", SUITE / "offpath_checks.py", "--system", system, "-r", "--nocolor"]
    words += ["--prefix", folder, "--report-file", folder / "report.json", "-S", f"offpath={ROOT / 'offpath'}"]
    return [str(word) for word in [*words, *options]]


def cases(folder):
    """Of the report, by the name of the test."""
    found = json.loads((folder / "report.json").read_text())["runs"][-1]["testcases"]
    return {case["display_name"].partition("@")[0].strip(): case for case in found}


def values(case):
    """What was measured, by name."""
    return {name.rpartition(":")[2]: value[0] for name, value in case["perfvalues"].items()}


def assert_all_passed(done, folder):
    """Each gain is there, and of the alltoall the share of the wire. How much it is depends on who else is busy."""
    assert done.returncode == 0, done.stdout + done.stderr
    found = cases(folder)
    assert {case["result"] for case in found.values()} == {"pass"} and len(found) == 3, found.keys()
    measured = {name: values(case) for name, case in found.items()}
    assert all(each["gain"] > 0 for name, each in measured.items() if "Gain" in name), measured
    [wire] = [each["wire"] for each in measured.values() if "wire" in each]
    assert 0 < wire < 1.2, measured


@pytest.mark.nightly
@pytest.mark.parametrize("is_open", (False, True), ids=("as it is", "something in the way"))
def test_on_this_machine(reframe, is_open, tmp_path):
    folder = tmp_path / "runtime"
    folder.mkdir(mode=0o755 if is_open else 0o700)
    env = {"OFFPATH_RUNTIME_DIR": str(folder), **AS_ROOT}
    words = command(reframe, tmp_path, "here", "-n", "Selftest", "-S", "launcher_options=--oversubscribe")
    done = captured(words, timeout=2 * LIMIT_S, cwd=tmp_path, env=os.environ | env)
    assert (done.returncode != 0) == is_open, done.stdout
    [case] = cases(tmp_path).values()
    assert case["result"] == ("fail" if is_open else "pass")
    if is_open:
        assert "only its owner" in done.stdout and "runtime folder" in done.stdout


@pytest.mark.nightly
def test_what_did_not_start_says_why(reframe, tmp_path):
    done = captured(command(reframe, tmp_path, "here", "-n", "Selftest", "-S", "mpi=mpich"), cwd=tmp_path)
    assert done.returncode != 0 and "belongs to Open MPI, not to what --mpi says" in done.stdout, done.stdout


@requires_root
@pytest.mark.nightly
def test_on_two_nodes_by_a_hostfile(reframe, lab, tmp_path):
    comparison.chosen_mpis("openmpi")
    (tmp_path / "hosts").write_text("node1\nnode2\n")
    config = CONFIG.replace('"launcher": "mpirun"', '"launcher": "mpirun", "extras": {"link_gbit": 1}')
    layout = f"launcher_options=--map-by ppr:1:node -hostfile {tmp_path}/hosts"
    words = command(reframe, tmp_path, "here", "-S", layout, *ON_TWO_CORES, config=config)
    assert_all_passed(offpath("lab", "exec", "--name", lab.name, "head", "--", *words, cwd=tmp_path), tmp_path)


@requires_root
@pytest.mark.nightly
@pytest.mark.alone
def test_as_jobs_of_a_slurm(reframe, tmp_path):
    """The lab's has no accounting, so ReFrame asks squeue."""
    config = CONFIG.replace('"scheduler": "slurm"', '"scheduler": "squeue"').replace("100}", "1}")
    with slurm_support.running() as cluster:
        words = command(reframe, tmp_path, "cluster:nodes", "-S", "mpi=mpich", *ON_TWO_CORES, config=config)
        done = captured(
            slurm.command(cluster.lab, words), timeout=3 * LIMIT_S, cwd=tmp_path, env=os.environ | cluster.environment
        )
        assert_all_passed(done, tmp_path)
        cluster.assert_clean()
