# SPDX-License-Identifier: BSD-3-Clause
"""Where the built or installed parts of Offpath are."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from offpath.base.errors import UserError
from offpath.base.files import private_folder, stays_in

BUILD_PRESETS = ("release", "dev")


@dataclass(frozen=True)
class Paths:
    """A build tree (build/<preset>) or an installed prefix; the two differ only in where programs are."""

    prefix: Path
    apps: Path
    bench: Path

    @property
    def service(self) -> Path:
        return self.prefix / "bin" / "offpathd"

    @property
    def policy_program(self) -> Path:
        return self.prefix / "bin" / "offpath-policy"

    @property
    def sites_program(self) -> Path:
        """Not built where there is no libdw."""
        return self.prefix / "bin" / "offpath-sites"

    def other_architecture(self, arch: str) -> Path:
        """Folder of the service's programs for `arch`; they are built in a tree of their own beside this one."""
        return self.prefix.parent / arch / "bin"

    def sysroot(self, arch: str) -> Path | None:
        """The libraries that those programs run with; None when there are none."""
        root = source_root()
        sysroot = root / f".{arch}" / "sysroot" if root else None
        return sysroot if sysroot and sysroot.is_dir() else None

    @property
    def lib(self) -> Path:
        return self.prefix / "lib"

    @property
    def preload_library(self) -> Path:
        return self.lib / "liboffpath_mpi.so"

    def backend_library(self, mpi: str) -> Path:
        return self.lib / f"liboffpath_mpi_{mpi}.so"

    @property
    def shmem_library(self) -> Path:
        """For programs that oshrun starts; not built where Open MPI came without OpenSHMEM."""
        return self.lib / "liboffpath_shmem.so"

    @property
    def watch_library(self) -> Path:
        """Preloaded as well where memory is moved (OFFPATH_MAPPED)."""
        return self.lib / "liboffpath_watch.so"

    @property
    def yield_library(self) -> Path:
        return self.lib / "liboffpath_yield.so"

    def app(self, name: str, mpi: str) -> Path:
        """The program `name` of apps/ built with `mpi`. Raises UserError when it is not built."""
        return built(self.apps / mpi / name)

    def bench_program(self, name: str, mpi: str) -> Path:
        """The program `name` of bench/ built with `mpi`. Raises UserError when it is not built."""
        return built(self.bench / mpi / name)

    def openmp_program(self, kind: str, name: str) -> Path:
        """The program with target regions `name` of apps/ or bench/ (`kind`). Raises UserError when it is not built."""
        return built((self.apps if kind == "apps" else self.bench) / "openmp" / name)

    def tool(self, name: str) -> Path:
        """The program `name` that needs no MPI. Raises UserError when it is not built."""
        return built(self.prefix / "bin" / name)

    @property
    def tasks_functions(self) -> Path:
        """Of the benchmarks of tasks. Raises UserError when it is not built."""
        return built(self.lib / "liboffpath_bench_functions.so")


def built(path: Path) -> Path:
    """The same. Raises UserError when it is not there."""
    if not path.exists():
        raise UserError(f"{path} does not exist (it is not built yet). Run: make build")
    return path


def source_root() -> Path | None:
    """The root of the source tree this package lives in; None when it is installed."""
    root = Path(__file__).resolve().parents[3]
    return root if (root / "CMakePresets.json").is_file() else None


def config_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where this user's own files are."""
    return _own_folder(environ.get("XDG_CONFIG_HOME"), ".config")


def cache_folder() -> Path:
    """Where we keep what this user may as well lose."""
    return _own_folder(os.environ.get("XDG_CACHE_HOME"), ".cache")


def _own_folder(given: str | None, name: str) -> Path:
    try:
        return (Path(given) if given else Path("~") / name).expanduser() / "offpath"
    except RuntimeError:  # no HOME, and a user without an account, as in containers
        return Path("/") / name / "offpath"


def runtime_folder() -> Path:
    """Where sockets and records of what runs are; src/session/link.cpp decides the same. Raises UserError."""
    chosen = os.environ.get("OFFPATH_RUNTIME_DIR")
    if chosen:
        return private_folder(Path(chosen))
    xdg = os.environ.get("XDG_RUNTIME_DIR")
    if xdg and stays_in(Path(xdg)):  # su and sudo may have brought it from another user
        with contextlib.suppress(UserError):  # a launcher may have brought the variable from another node
            return private_folder(Path(xdg) / "offpath")
    return private_folder(Path(f"/tmp/offpath-{os.getuid()}"))


def paths() -> Paths:
    """OFFPATH_PREFIX if given, else the first preset that is built, else the installed prefix."""
    override = os.environ.get("OFFPATH_PREFIX")
    if override:
        prefix = Path(override).absolute()
        if not prefix.is_dir():
            raise UserError(f"OFFPATH_PREFIX={override} is not a folder. Give a build tree or an installed prefix.")
        return _at(prefix)
    root = source_root()
    if root is None:
        from_wheel = Path(__file__).resolve().parents[1] / "native"
        return _at(from_wheel if from_wheel.is_dir() else Path(__file__).resolve().parents[5])
    candidates = [root / "build" / preset for preset in BUILD_PRESETS]
    built = [tree for tree in candidates if (tree / "lib" / "liboffpath_mpi.so").exists()]
    return _at((built or candidates)[0])


def _at(prefix: Path) -> Paths:
    installed = prefix / "libexec" / "offpath"
    is_build_tree = (prefix / "CMakeCache.txt").exists()
    programs = installed if installed.is_dir() and not is_build_tree else prefix
    return Paths(prefix=prefix, apps=programs / "apps", bench=programs / "bench")
