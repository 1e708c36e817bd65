# SPDX-License-Identifier: BSD-3-Clause
"""What pyproject.toml cannot say: a wheel with the service in it is for one platform, and for every Python.

It has man pages and completion, made while it is built, and the tables of include/offpath/words."""

import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from offpath import __version__  # noqa: E402
from offpath.base import config, words  # noqa: E402
from offpath.cli.commands import app  # noqa: E402
from offpath.reference import completion, man, model  # noqa: E402

NATIVE = (HERE / "offpath" / "native").is_dir()


class Native(Distribution):
    def has_ext_modules(self):
        return NATIVE


class Wheel(bdist_wheel):
    def get_tag(self):
        return ("py3", "none", super().get_tag()[2]) if NATIVE else super().get_tag()


class Build(build_py):
    def run(self):
        super().run()
        shutil.copytree(words.folder(), Path(self.build_lib) / "offpath" / "_words", dirs_exist_ok=True)


def pages() -> list:
    """Man pages and completion, as setuptools wants files: by folder."""
    root = model.command_line(app)
    settings = {each.name: (each.help, each.default or "") for each in config.SETTINGS}
    files = {f"share/man/man1/{name}": text for name, text in man.pages(root, __version__, settings).items()}
    files["share/bash-completion/completions/offpath"] = completion.bash(root)
    files["share/zsh/site-functions/_offpath"] = completion.zsh(root)
    written: dict = {}
    for name, text in files.items():
        file = Path("build") / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        written.setdefault(str(Path(name).parent), []).append(str(file))
    return sorted(written.items())


setup(cmdclass={"bdist_wheel": Wheel, "build_py": Build}, distclass=Native, data_files=pages())
