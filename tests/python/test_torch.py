# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch programs whose tensors the service moves."""

import re

from conftest import ROOT, SEED
from torch_support import run_ranks


def test_the_backend_does_what_torch_promises():
    assert [words.splitlines()[-1] for words in run_ranks("torch_group.py", 2, str(SEED))] == [
        f"rank {rank} of 2: the same" for rank in range(2)
    ]


def test_a_rank_that_dies_is_an_error_of_the_others():
    said = run_ranks("torch_group.py", 3, str(SEED), "dies")
    for rank in (0, 2):
        assert f"rank {rank}: " in said[rank] and "lost" in said[rank]


def test_the_guides_program_runs(tmp_path):
    program = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "guide-torch.md").read_text(), re.DOTALL).group(1)
    path = tmp_path / "program.py"
    path.write_text(program)
    said = run_ranks(str(path), 2)
    assert [words.splitlines()[-1] for words in said] == [f"rank {rank} of 2: [3.0, 3.0]" for rank in range(2)]
