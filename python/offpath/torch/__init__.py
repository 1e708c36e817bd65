# SPDX-License-Identifier: BSD-3-Clause
"""Offpath for PyTorch programs (docs/guide-torch.md): `import offpath.torch` makes torch.distributed know the backend
"offpath"."""

from offpath.torch.process_group import ProcessGroup, register
from offpath.torch.starting import init_process_group

__all__ = ["ProcessGroup", "init_process_group", "register"]

register()
