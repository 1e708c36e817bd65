# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: F403, F405  (Spack gives its names so)
"""Spack: put this file into packages/offpath/ of a repository of your own, and the source archive
into a mirror or the working directory. Installing fetches Python packages from PyPI."""

import os

from spack.package import *

try:  # from Spack 1.0 on
    from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
except ImportError:
    pass


class Offpath(CMakePackage):
    """Moves a parallel program's communication while the program computes: a service beside the
    program does it, on spare cores or on a SmartNIC's Arm cores. Programs are neither changed nor
    recompiled."""

    license("BSD-3-Clause")

    # There is no public address to fetch it from: `make release` makes it.
    manual_download = True
    url = f"file://{os.getcwd()}/offpath-0.2.0.tar.gz"

    # The archive holds this file, so its sum cannot be here: spack install --no-checksum
    version("0.2.0")

    variant("petsc", default=False, description="Solvers of PETSc, where pkg-config finds it")
    variant("zfp", default=True, description="Compression with a loss")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")
    depends_on("ucx@1.12:")
    depends_on("rdma-core")
    depends_on("libsodium")
    depends_on("lz4")
    depends_on("zstd")
    depends_on("libdeflate")
    depends_on("elfutils")
    depends_on("zfp", when="+zfp")
    depends_on("fftw@3:~mpi")
    depends_on("nlohmann-json")
    depends_on("python@3.9:", type=("build", "run"))
    depends_on("petsc@3.18:", when="+petsc")

    generator("ninja")
    conflicts("%gcc@:10", msg="Offpath is written in C++20")

    def setup_build_environment(self, env):
        mpi = self.spec["mpi"]
        env.set("MPICC_OPENMPI" if mpi.name == "openmpi" else "MPICC_MPICH", mpi.mpicc)

    def cmake_args(self):
        python = self.spec["python"].command.path
        return [self.define("OFFPATH_TESTS", False), self.define("OFFPATH_PYTHON", python)]
