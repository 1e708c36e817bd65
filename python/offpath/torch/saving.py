# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints that leave beside training."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import torch

from offpath.api.saving import Saving
from offpath.torch.joining import session

if TYPE_CHECKING:
    from offpath.api.saving import Path


def save(state: Any, path: Path) -> Saving:
    """As torch.save(): torch.load() reads it. The state is copied before this returns, and may change then.

    The service writes the file; `path` keeps what it is until all of that is on the disk. Raises OSError.
    """
    image = io.BytesIO()
    torch.save(state, image)
    return Saving(session(), path, b"", image.getbuffer())
