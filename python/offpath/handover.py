# SPDX-License-Identifier: BSD-3-Clause
"""The folder through which a run's ranks hand in what they recorded."""

import contextlib
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
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(_hidden(Path.cwd() if beside is None else beside.absolute().parent))
        except OSError:
            made = stack.enter_context(_hidden(None))
        yield Path(made)


def _hidden(where: Path | None) -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix=".offpath-", dir=where, ignore_cleanup_errors=True)
