#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes man pages and completion below a prefix, and prints their paths. Run by cmake --install."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]
sys.dont_write_bytecode = True

import programs  # noqa: E402
from offpath import __version__  # noqa: E402
from offpath.base import config  # noqa: E402
from offpath.cli.commands import app  # noqa: E402
from offpath.reference import completion, man, model  # noqa: E402

INSTALLED = {"offpathd", "offpath-executor", "offpath-delay"}  # all that users may meet in a list of processes


def main() -> None:
    share = Path("share")
    root = model.command_line(app)
    settings = {each.name: (each.help, each.default or "") for each in config.SETTINGS}
    pages = man.pages(root, __version__, settings)
    for command in programs.native():
        if command.name in INSTALLED:
            pages[f"{command.name}.1"] = man.page(command, __version__, see=["offpath"])
    for name, text in programs.compilers().items():
        pages[f"{name}.1"] = man.plain_page(name, text, __version__)
    _write({share / "man" / "man1" / name: text for name, text in pages.items()})
    _write(
        {
            share / "bash-completion" / "completions" / "offpath": completion.bash(root),
            share / "zsh" / "site-functions" / "_offpath": completion.zsh(root),
        }
    )


def _write(files: dict[Path, str]) -> None:
    for path, text in files.items():
        file = Path(sys.argv[1]) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        print(path)


if __name__ == "__main__":
    main()
