# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch programs whose batches and validations are made on other machines: DPUs of a lab that go, or are not as the
program is, and a spare node. (test_lab_tasks.py has the rest.)"""

import re
import subprocess
import uuid

import pytest
from conftest import LIMIT_S, PROGRAMS, ROOT, captured, requires_root
from offpath.base.files import new_secret
from offpath.base.paths import paths
from offpath.dpu import service
from offpath.lab import Lab, machines
from offpath.lab.cluster import ENTER
from test_lab_cut_dpus import cut, heal
from torch_support import environment, interpreter, other_torch

pytestmark = requires_root


@pytest.fixture(scope="module")
def lab():
    interpreter()
    with Lab(nodes=2, rate="1gbit", dpus=1, name=f"t{uuid.uuid4().hex[:6]}") as lab:
        yield lab


def start(lab, program, *arguments, dpu=0, settings=(), **more):
    """On node1, with executors on that DPU of the lab."""
    entry = machines.entry(lab.plan, lab.plan.dpus[dpu], str(ENTER), " ".join(["env", *settings, str(paths().service)]))
    return subprocess.Popen(
        lab.inside("node1", [interpreter(), str(PROGRAMS / program), *arguments]),
        env=environment() | {"OFFPATH_DPUS": f"node1={entry}"} | more,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def finished(process, words):
    said, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0 and said == words, said


@pytest.mark.nightly
def test_a_spare_node_makes_batches(lab, tmp_path):
    finished(start(lab, "torch_training.py", str(tmp_path), "batches", dpu=1), "the same\n")


def test_a_dpu_that_disappears_in_mid_epoch(lab):
    """Its link is cut and nobody is told: its samples are made again here, and the epoch ends with the same batches."""
    process = start(lab, "torch_misfits.py", "goes", "lost", OFFPATH_SERVICE_SILENCE_MS="1500")
    try:
        assert process.stdout.readline() == "now\n"
        cut(lab)
        finished(process, "right\n")
    finally:
        heal(lab)
        process.kill()


@pytest.mark.nightly
def test_the_guides_command(lab, tmp_path):
    """`offpath run --dpus`, a starter on the DPU, and the guide's training."""
    guide = (ROOT / "docs" / "guide-torch.md").read_text()
    pictures, _, train = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)[-1].partition("# train.py\n")
    (command,) = re.findall(r"^    (offpath run --dpus .*)$", guide, re.MULTILINE)
    (tmp_path / "pictures.py").write_text(pictures)
    (tmp_path / "train.py").write_text(train)
    (tmp_path / "dpus.txt").write_text(f"node1 {lab.plan.dpus[0].address} port=7001 executors=2\n")
    new_secret(tmp_path / "KEY")
    starter = [str(paths().service), "--listen", "0.0.0.0:7001", "--key-file", str(tmp_path / "KEY")]
    log = tmp_path / "log"
    with open(log, "wb") as output:
        listening = subprocess.Popen(lab.inside("node1-dpu", starter), cwd=tmp_path, stdout=output, stderr=output)
    try:
        service.await_listening(listening, "node1-dpu:7001", log)
        names = {"offpath": str(ROOT / "offpath"), "python": interpreter()}
        words = [names.get(word, word) for word in command.split()]
        result = captured(
            lab.inside("node1", words), cwd=tmp_path,
            env=environment() | {"OFFPATH_DEVICE_KEY_FILE": str(tmp_path / "KEY"), "OFFPATH_LOG": "info"},
        )  # fmt: skip
    finally:
        listening.terminate()
        listening.wait(LIMIT_S)
    assert result.returncode == 0 and result.stdout.startswith("validated: ["), result.stdout + result.stderr
    assert "RuntimeWarning" not in result.stderr, result.stderr


@pytest.mark.nightly
def test_a_dpu_with_another_pytorch(lab, tmp_path):
    there, words = other_torch(tmp_path, "another torch"), ["they have", "PyTorch 0.4.1", "this process has"]
    process = start(lab, "torch_misfits.py", "another torch", *words, settings=[f"OFFPATH_TASK_PYTHON={there}"])
    finished(process, "right\n")
