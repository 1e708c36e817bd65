# SPDX-License-Identifier: BSD-3-Clause
"""Offpath for PyTorch programs (docs/guide-torch.md). Importing it adds the backend "offpath" to
torch.distributed."""

from offpath.torch.batches import SampleError
from offpath.torch.loader import DataLoader
from offpath.torch.process_group import ProcessGroup, register
from offpath.torch.saving import save
from offpath.torch.seeding import Seeded
from offpath.torch.sharding import overlap
from offpath.torch.starting import init_process_group
from offpath.torch.validation import BestCheckpoint, EarlyStopping, Result, Validation

__all__ = [
    "BestCheckpoint", "DataLoader", "EarlyStopping", "ProcessGroup", "Result", "SampleError", "Seeded", "Validation",
    "init_process_group", "overlap", "register", "save",
]  # fmt: skip

register()
