# SPDX-License-Identifier: BSD-3-Clause
"""Several mpiruns at a time in one lab: what one of them does to its files is nothing to the others."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from conftest import LIMIT_S, requires_root, succeeded
from offpath.lab.plan import STATE_ROOT

pytestmark = requires_root


def session_folders(lab):
    done = succeeded(lab.mpirun("openmpi", 1, ["/usr/bin/env"], timeout=LIMIT_S))
    return {line.split("=", 1)[1] for line in done.stdout.splitlines() if line.startswith("PMIX_SERVER_TMPDIR=")}


def test_open_mpis_keep_their_files_apart(lab):
    """Else of two daemons that make the same folder at the same time one ends."""
    state = STATE_ROOT / lab.name
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(session_folders, [lab, lab])
    tops = [{Path(folder).relative_to(state).parts[0] for folder in folders} for folders in (first, second)]
    assert all(len(folders) == len(lab.plan.nodes) for folders in (first, second)), (first, second)
    assert all(len(names) == 1 for names in tops) and tops[0] != tops[1], tops
    assert not any((state / name).exists() for names in tops for name in names), "what is left of them"
