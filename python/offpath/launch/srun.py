# SPDX-License-Identifier: BSD-3-Clause
"""What srun hands on of its environment: by default all, but --export and its variables can say otherwise."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

VARIABLES = ("SLURM_EXPORT_ENV", "SRUN_EXPORT_ENV")  # a script of `sbatch --export=NONE` has the first one, too
OPTION = "--export="
EVERYTHING = "ALL"
NOTHING = ("", "NONE", "NIL")
NEXT_PROGRAM = ":"  # of one step, with options of its own
# Options of srun whose next word is not their value; all others have one, in that word or behind "=".
FLAGS = {
    "--bcast", "--compress", "--contiguous", "--debugger-test", "--disable-status", "--exact", "--exclusive", "--help",
    "--hold", "--immediate", "--kill-on-bad-exit", "--label", "--multi-prog", "--mem-bind-sort", "--nice",
    "--no-allocate", "--no-kill", "--overcommit", "--overlap", "--oversubscribe", "--preserve-env", "--propagate",
    "--pty", "--quiet", "--reboot", "--resv-ports", "--send-libs", "--spread-job", "--test-only", "--unbuffered",
    "--usage", "--use-min-nodes", "--verbose", "--version", "--whole", "--x11",
}  # fmt: skip
SHORT_FLAGS = "EHOQVXZhlsuv"
SHORT_WITH_REST = "IKk"  # what follows in the same word is their value


def exporting(argv: Sequence[str], names: Collection[str], environ: Mapping[str, str]) -> tuple[list[str], dict]:
    """`argv`, an srun, and what to add to its environment, so that its tasks get the variables `names`, too."""
    words = list(argv)
    for start in [0, *(at for at, word in enumerate(words) if word == NEXT_PROGRAM)]:
        place = _export_option(words, start + 1)
        if place is not None:
            option = OPTION if words[place].startswith(OPTION) else ""
            words[place] = option + _with(words[place][len(option) :], names)
    return words, {name: _with(environ[name], names) for name in VARIABLES if environ.get(name)}


def _with(given: str, names: Collection[str]) -> str:
    if EVERYTHING in given.split(","):
        return given
    return ",".join([*([] if given in NOTHING else [given]), *sorted(names)])


def _export_option(words: Sequence[str], place: int) -> int | None:
    """Which of srun's own words, from that one on, has what --export was given."""
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
    return len(rest) != 1 or rest in SHORT_WITH_REST
