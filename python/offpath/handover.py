# SPDX-License-Identifier: BSD-3-Clause
"""The folder through which a run's ranks hand in what they recorded."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

# For ranks that are not the first, where a launcher has started us once for each: nothing can be there, so what they
# record goes to a rank that has a folder.
ELSEWHERE = Path("/dev/null/rank")


@contextlib.contextmanager
def folder(beside: Path | None = None) -> Iterator[Path]:
    """A folder of our own, gone afterwards: in the folder of the file `beside`, else in the working directory.

    That is what the nodes of a cluster share, and one rank that sees it is enough: the others send it theirs. Where
    nothing can be made there, in the folder for temporary files, which ranks of this node see.
    """
    try:
        made = tempfile.mkdtemp(prefix=".offpath-", dir=Path.cwd() if beside is None else beside.absolute().parent)
    except OSError:
        made = tempfile.mkdtemp(prefix=".offpath-")
    try:
        yield Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)
