# SPDX-License-Identifier: BSD-3-Clause
"""What pyproject.toml cannot say: a wheel with the service in it is for one platform, and for every Python."""

from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.dist import Distribution

NATIVE = (Path(__file__).parent / "offpath" / "native").is_dir()


class Native(Distribution):
    def has_ext_modules(self):
        return NATIVE


class Wheel(bdist_wheel):
    def get_tag(self):
        return ("py3", "none", super().get_tag()[2]) if NATIVE else super().get_tag()


setup(cmdclass={"bdist_wheel": Wheel}, distclass=Native)
