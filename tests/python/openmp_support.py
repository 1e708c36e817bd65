# SPDX-License-Identifier: BSD-3-Clause
"""Building and running programs with target regions on the devices that there are here."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conftest import ROOT, captured, succeeded
from offpath.base.errors import UserError
from offpath.base.files import new_secret
from offpath.base.paths import paths
from offpath.dpu import service

PROGRAMS = ROOT / "tests" / "openmp" / "programs"
TARGETS = {"x86_64": "x86_64-pc-linux-gnu", "aarch64": "aarch64-unknown-linux"}
CLANG_PARTS = ("clang-14", "/usr/lib/llvm-14/bin/clang-offload-wrapper", "/usr/lib/llvm-14/lib/libomptarget.so")


def missing_compiler() -> str | None:
    """What keeps target regions from being compiled here; None when nothing does."""
    for part in CLANG_PARTS:
        if shutil.which(part) is None and not Path(part).exists():
            return f"{part} is missing: programs with target regions cannot be built. Run: make setup"
    if not (paths().lib / "libomptarget.rtl.x86_64.so").exists():
        return "the plugin is not built. Run: make build"
    return None


def missing_for(arch: str) -> str | None:
    """What keeps an emulated device of `arch` from running here; None when nothing does."""
    try:
        service.emulator_command(arch, paths())
    except UserError as error:
        return f"no {arch}: {error} It runs in: make nightly"
    linker = shutil.which(f"{arch}-linux-gnu-ld")
    return None if linker else f"no {arch}: its linker is missing. It runs in: make nightly"


def compiler(language: str = "c") -> str:
    return str(paths().prefix / "bin" / ("offpath-cc" if language == "c" else "offpath-c++"))


@dataclass
class Builder:
    """Programs by name, compiled when they are first asked for: with code for every architecture there is here."""

    folder: Path
    targets: str = ",".join(triple for arch, triple in TARGETS.items() if arch == "x86_64" or not missing_for(arch))
    built: dict[str, Path] = field(default_factory=dict)

    def __call__(self, name: str) -> Path:
        if name not in self.built:
            source = next(PROGRAMS.glob(f"{name}.c*"))
            language = "c" if source.suffix == ".c" else "c++"
            self.compile([source, "-o", self.folder / name], language=language)
            self.built[name] = self.folder / name
        return self.built[name]

    def compile(self, arguments: list, targets: str | None = None, language: str = "c") -> subprocess.CompletedProcess:
        words = [compiler(language), "-O2", "-Wall", "-Werror", f"-fopenmp-targets={targets or self.targets}"]
        result = succeeded(captured([*words, *map(str, arguments)], cwd=self.folder))
        assert result.stderr == "" or "OFFPATH_CC_VERBOSE" in os.environ, result.stderr
        return result


def run(program: Path | str, *arguments: str, env: Mapping[str, str] = {}) -> subprocess.CompletedProcess:
    return captured([str(program), *arguments], env=os.environ | dict(env))


@contextlib.contextmanager
def standing_device(name: str, arch: str, folder: Path, key: Path | None = None) -> Iterator[service.Record]:
    """A device that is stopped at the end; with a key of its own unless given."""
    if key is None:
        key = folder / f"{name}.key"
        new_secret(key)
    record = service.start(service.Options(name, arch, service.with_free_port("127.0.0.1"), key))
    try:
        yield record
    finally:
        service.stop(record)


def seen_by(*records: service.Record, local: int = 0) -> dict[str, str]:
    """The variables by which a program uses these devices, after `local` software DPUs called local0, local1..."""
    software = [f"local{number}=local" for number in range(local)]
    entries = software + [record.entry for record in records]
    keys = {service.KEY_VARIABLE: records[0].key_file} if records else {}
    return {"OFFPATH_DEVICES": ",".join(entries), **keys}


def remove_registrations_of_the_dead() -> None:
    """What OpenMP's library leaves in /dev/shm of a program that ended abnormally, as many of these tests do."""
    for file in Path("/dev/shm").glob(f"__KMP_REGISTERED_LIB_*_{os.getuid()}"):
        if not Path("/proc", file.name.split("_")[-2]).exists():
            file.unlink(missing_ok=True)


def requires(reason: str | None):
    return pytest.mark.skipif(reason is not None, reason=reason or "")
