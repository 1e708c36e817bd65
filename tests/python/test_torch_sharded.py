# SPDX-License-Identifier: BSD-3-Clause
"""Fully sharded trainings. They want a newer PyTorch than Debian 12 has: tools/setup --foreign gets one."""

import re

import pytest
from conftest import ROOT, SEED
from torch_support import run_ranks, sharding_interpreter


@pytest.mark.nightly
@pytest.mark.parametrize("ranks", (2, 3))
@pytest.mark.parametrize("what", ("ways", "accumulation", "hooks"))
def test_losses_are_those_over_gloo(what, ranks):
    """FSDP and fully_shard, with odd sizes, and DistributedDataParallel's newer hooks; by two ranks bit for bit."""
    said = run_ranks("torch_sharded.py", ranks, str(SEED), what, python=sharding_interpreter())
    assert [words.splitlines()[-1] for words in said] == [f"rank {rank} of {ranks}: the same" for rank in range(ranks)]


@pytest.mark.nightly
@pytest.mark.parametrize("way", ("waits", "overlaps"))
def test_a_service_that_is_lost_is_an_error_of_all(way):
    said = run_ranks("torch_sharded.py", 2, str(SEED), way, python=sharding_interpreter())
    assert all(re.search(r"^rank \d: \w+Error: .*lost", words, re.MULTILINE) for words in said), said


@pytest.mark.nightly
def test_the_guides_program_runs(tmp_path):
    section = (ROOT / "docs" / "guide-torch.md").read_text().partition("## Sharded parameters\n")[2]
    program = tmp_path / "sharded.py"
    program.write_text(re.search(r"```python\n(.*?)```", section, re.DOTALL)[1])
    said = run_ranks(str(program), 2, python=sharding_interpreter())
    assert len(said) == 2 and len({words.splitlines()[-1] for words in said}) == 1 and "loss" in said[0], said
