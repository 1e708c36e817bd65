# SPDX-License-Identifier: BSD-3-Clause
"""What srun hands on of its environment: by default all, but --export and SLURM_EXPORT_ENV can say otherwise."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

VARIABLE = "SLURM_EXPORT_ENV"  # what a script of `sbatch --export=NONE` has, too
OPTION = "--export="
EVERYTHING = "ALL"
NOTHING = ("NONE", "NIL")
# Options of srun whose next word is not their value; all others have one, in that word or behind "=".
FLAGS = {
    "--contiguous", "--disable-status", "--exact", "--exclusive", "--help", "--hold", "--immediate",
    "--kill-on-bad-exit", "--label", "--multi-prog", "--mem-bind-sort", "--no-allocate", "--no-kill", "--overcommit",
    "--overlap", "--oversubscribe", "--preserve-env", "--propagate", "--pty", "--quiet", "--reboot", "--spread-job",
    "--test-only", "--unbuffered", "--usage", "--use-min-nodes", "--verbose", "--version", "--whole",
}  # fmt: skip
SHORT_FLAGS = "EHIKOQVXZhklsuv"


def exporting(argv: Sequence[str], names: Collection[str], environ: Mapping[str, str]) -> tuple[list[str], dict]:
    """`argv`, an srun, and what to add to its environment, so that its tasks get the variables `names`, too."""
    words = list(argv)
    place = _export_option(words)
    if place is not None:
        option = OPTION if words[place].startswith(OPTION) else ""
        words[place] = option + _with(words[place][len(option) :], names)
        return words, {}
    given = environ.get(VARIABLE)
    return words, {VARIABLE: _with(given, names)} if given else {}


def _with(given: str, names: Collection[str]) -> str:
    if EVERYTHING in given.split(","):
        return given
    return ",".join([*([] if given in NOTHING else [given]), *sorted(names)])


def _export_option(words: Sequence[str]) -> int | None:
    """Which of srun's own words has what --export was given."""
    place = 1
    while place < len(words) and words[place].startswith("-") and words[place] != "--":
        word = words[place]
        if word == "--export" and place + 1 < len(words):
            return place + 1
        if word.startswith(OPTION):
            return place
        place += 1 if _is_whole(word) else 2
    return None


def _is_whole(word: str) -> bool:
    """The option's value, if it has one, is not the next word."""
    if word.startswith("--"):
        return "=" in word or word in FLAGS
    rest = word[1:].lstrip(SHORT_FLAGS)  # flags may share a word, with one option that has a value behind them
    return len(rest) != 1
