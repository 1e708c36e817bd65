# SPDX-License-Identifier: BSD-3-Clause
"""Commands of the guides, run as they are written: in the source tree, or where Offpath is installed."""

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from conftest import AS_ROOT, LIMIT_S, PROGRAMS, ROOT, captured

GUIDES = sorted((ROOT / "docs").glob("guide-*.md"))
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
# What a reader has: an MPI program, an OpenSHMEM program.
PROGRAM = {"./my_mpi_program": ("mpicc", PROGRAMS / "overlap.c"), "./my_shmem_program": ("oshcc", PROGRAMS / "shmem.c")}


def blocks(text: str) -> list[list[str]]:
    """Its commands, those that stand together in one list."""
    parts = re.findall(r"(?:^    \S.*\n)+", FENCED.sub("", text), re.MULTILINE)
    return [re.findall(r"^    (.*)$", part, re.MULTILINE) for part in parts]


def write_files(text: str, folder: Path) -> None:
    """The files that it shows, which have their names in the first line."""
    for name, code in re.findall(r"^```\w+\n(?://|#) (\S+\.\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        (folder / name).write_text(code)


@dataclass(frozen=True)
class Place:
    """prefix: of an installation; None: the source tree."""

    prefix: Path | None = None
    python: Path = ROOT / ".venv" / "bin"  # a folder with `python`

    def command(self, line: str) -> str:
        """As guide-start.md says what to write where Offpath is installed."""
        if self.prefix is None:
            return line
        line = re.sub(r"(?<!\S)\./offpath(?= )", "offpath", line)
        line = line.replace("build/release/apps", str(self.prefix / "libexec" / "offpath" / "apps"))
        return line.replace("build/release", str(self.prefix))

    def environment(self, runtime: str) -> dict:
        ours = [self.prefix / "bin"] if self.prefix else [ROOT, ROOT / "build" / "release" / "bin"]
        left_out = ("OFFPATH_SERVICE_SHARE", "CPATH", "LIBRARY_PATH", "LD_LIBRARY_PATH", "OFFPATH_PREFIX", "PYTHONPATH")
        variables = {name: value for name, value in os.environ.items() if name not in left_out}
        variables |= {
            "PATH": ":".join(map(str, [*ours, self.python, os.environ["PATH"]])),
            "OFFPATH_RUNTIME_DIR": runtime,
            **AS_ROOT,
            "OMPI_MCA_rmaps_base_oversubscribe": "1",  # a guide does not know how few cores there are
        }
        if self.prefix is None:
            variables["PYTHONPATH"] = str(ROOT / "python")
        return variables

    def run(self, text: str, lines: list[str], folder: Path) -> subprocess.CompletedProcess:
        """In one shell, in a folder that has the files of `text` and, in the tree, what the tree has."""
        if self.prefix is None:
            for entry in ("offpath", "build", "include", "tests", "apps"):
                (folder / entry).symlink_to(ROOT / entry)
        write_files(text, folder)
        lines = [self.command(line) for line in lines]
        for name, (compiler, source) in PROGRAM.items():
            if any(name in line for line in lines):
                subprocess.run([compiler, source, "-o", folder / name], check=True)
        with tempfile.TemporaryDirectory(prefix="offpath-guide-") as runtime:  # paths of sockets are bounded
            return captured(
                ["bash", "-e", "-c", "\n".join(lines)], cwd=folder, env=self.environment(runtime), timeout=2 * LIMIT_S
            )


def missing_for(lines: list[str]) -> str | None:
    for command in ("mpirun", "oshrun", "clang-14" if any("offpath-cc" in line for line in lines) else "sh"):
        if any(command in line for line in lines) and not shutil.which(command):
            return f"{command} is not installed"
    return None
