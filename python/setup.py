# SPDX-License-Identifier: BSD-3-Clause
"""A wheel has man pages and completion, too, made while it is built. Everything else is in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from offpath import __version__, config  # noqa: E402
from offpath.reference import completion, man, model  # noqa: E402

ROOT = model.command_line()
SETTINGS = {each.name: (each.help, each.default or "") for each in config.SETTINGS}
FILES = {f"share/man/man1/{name}": text for name, text in man.pages(ROOT, __version__, SETTINGS).items()}
FILES["share/bash-completion/completions/offpath"] = completion.bash(ROOT)
FILES["share/zsh/site-functions/_offpath"] = completion.zsh(ROOT)

written: dict = {}
for name, text in FILES.items():
    file = Path("build") / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    written.setdefault(str(Path(name).parent), []).append(str(file))
setup(data_files=sorted(written.items()))
