# SPDX-License-Identifier: BSD-3-Clause
"""What became of a program whose service was killed, by how it ended and what it said."""

from __future__ import annotations

import dataclasses
import re
import signal
import subprocess
from dataclasses import dataclass

from offpath.base.processes import Completed

RIGHT, ERROR, WRONG, STOOD = "right", "error", "wrong", "stood"
VERDICTS = (RIGHT, ERROR, WRONG, STOOD)
FINE = (RIGHT, ERROR)

CHECKED = re.compile(r"^verified: yes", re.MULTILINE)
FAILED_CHECK = re.compile(r"^(verified: no\b|faults: WRONG.*)", re.MULTILINE | re.IGNORECASE)
# Of a call for several requests that asks for no statuses, an MPI says no more than that there was an error.
# And what ranks of Open MPI 4.1 say at the same time its launcher may drop, with these words.
OURS = re.compile(
    r"Offpath: .*|MPI_ERR_IN_STATUS|See the MPI_ERROR field in MPI_Status|ORTE_ERROR_LOG: .*show_help\.c.*"
)
ABORTED = re.compile(r"^Abort\(\d+\) on node", re.MULTILINE)
ERRORS = re.compile(r"^errors: [1-9]", re.MULTILINE)  # of a program that has them returned
LONGEST_WAIT = re.compile(r"^longest wait: ([\d.]+) s", re.MULTILINE)
# An abort of an MPI is an exit, or a SIGTERM or SIGKILL of its launcher. Nobody sends these.
CRASHES = (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV)
CRASH = re.compile(rf".*\bsignal:? (?:\w+ )*\(?({'|'.join(str(int(each)) for each in CRASHES)})\b.*", re.IGNORECASE)


@dataclass(frozen=True)
class Ended:
    """How a run came out."""

    verdict: str
    longest_wait_s: float | None = None
    said: str = ""  # the words by which it was judged, where it is not right
    output: str = ""  # all that it said, where it is not right


def stood(end: subprocess.TimeoutExpired) -> Ended:
    """Of a run that was ended."""
    text = "\n".join(each.decode(errors="replace") for each in (end.stdout, end.stderr) if each)
    return dataclasses.replace(_wrong(text) or Ended(STOOD, said=f"not over after {end.timeout:.0f} s"), output=text)


def judged(run: Completed, left_behind: bool = False) -> Ended:
    """Of a run that has ended. `left_behind`: ranks had to be ended long after others were gone. MPICH's launcher does
    not end those of other nodes when an error handler aborts, without Offpath, too."""
    text = f"{run.stdout or ''}\n{run.stderr or ''}"
    hangs = left_behind and not ABORTED.search(text)
    ended = _wrong(text) or (Ended(STOOD, said="some ranks ended, others did not") if hangs else _judged(run, text))
    return ended if ended.verdict == RIGHT else dataclasses.replace(ended, output=text)


def _wrong(text: str) -> Ended | None:
    found = FAILED_CHECK.search(text) or CRASH.search(text)
    return Ended(WRONG, said=found[0].strip()) if found else None


def _judged(run: Completed, text: str) -> Ended:
    if run.exit_status - 128 in CRASHES:
        return Ended(WRONG, said=f"exit {run.exit_status}")
    ours = OURS.search(text)
    if run.returncode != 0:
        return Ended(ERROR, said=ours[0]) if ours else Ended(WRONG, said=f"exit {run.exit_status}, and nobody says why")
    if not CHECKED.search(text):
        return Ended(WRONG, said="exit 0, and nothing was checked")
    if ERRORS.search(text):
        return Ended(ERROR, said=ours[0]) if ours else Ended(WRONG, said="errors that are not Offpath's")
    wait = LONGEST_WAIT.search(text)
    return Ended(RIGHT, float(wait[1]) if wait else None)
