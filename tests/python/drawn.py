# SPDX-License-Identifier: BSD-3-Clause
"""Which part of the tests a change is tried with, where there are more than `make test` has time for.

Another part for each change of code, so that every one is tested elsewhere, and the same for the same code. All of them
run in `make nightly`. OFFPATH_TEST_SEED chooses another.

    tests/python/drawn.py BUILD    what ctest leaves out, as the regular expression that its option -E takes
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "OFFPATH_TEST_SEED"
FULL = os.environ.get("OFFPATH_TEST_FULL") == "1"  # nothing is left out


def seed() -> int:
    if chosen := os.environ.get(VARIABLE):
        return int(chosen)
    code = [f"HEAD:{folder}" for folder in ("src", "frontends", "python", "tests")]
    trees = subprocess.run(["git", "rev-parse", *code], cwd=ROOT, capture_output=True, text=True).stdout
    return zlib.crc32(trees.encode())


def left_out(names: list[str], number: int) -> list[str]:
    """Of a group of MPI programs that is there for both MPIs, those of one MPI. Of the API's suites half of those that
    run once more, with several workers or behind an agent."""
    out = []
    for name in names:
        other = name.replace(".openmpi.", ".mpich.")
        if other != name and other in names:
            out.append(random.Random(f"{number} {name}").choice([name, other]))
    again = [name for name in names if re.match(r"api\.(agent|workers)\.", name)]
    return sorted([*out, *random.Random(f"{number} api").sample(again, len(again) // 2)])


def main(build: str) -> None:
    command = ["ctest", "--test-dir", build, "-LE", "nightly", "--show-only=json-v1"]
    listed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    names = [] if FULL else left_out([each["name"] for each in listed["tests"]], seed())
    print("^(" + "|".join(map(re.escape, names)) + ")$")


if __name__ == "__main__":
    main(sys.argv[1])
