# SPDX-License-Identifier: BSD-3-Clause
"""Target regions on a software DPU and on an emulated Arm: every kind of program, compiled as users compile."""

import contextlib
import os
import resource
import shutil
import subprocess
from pathlib import Path

import openmp_support
import pytest
from conftest import LIMIT_S, ROOT, captured, succeeded
from offpath.base.paths import paths
from openmp_support import PROGRAMS, TARGETS, Builder, requires, run, seen_by, standing_device

pytestmark = requires(openmp_support.missing_compiler())
arm = requires(openmp_support.missing_for("aarch64"))
ARCHITECTURES = ["x86_64", pytest.param("aarch64", marks=arm)]
CHECKED = ["parallel", "environments", "pointers", "asynchronous", "cplusplus", "ping_pong"]
KERNELS = ["stencil", "mriq", "lbm", "cg", "spmv", "ep"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("openmp")


@pytest.fixture(scope="module")
def build(folder):
    return Builder(folder)


@pytest.fixture(scope="module", autouse=True)
def own_runtime_folder(tmp_path_factory):
    """Services of these tests meet nobody else's."""
    path = tmp_path_factory.mktemp("run")
    path.chmod(0o700)
    before = os.environ.get("OFFPATH_RUNTIME_DIR")
    os.environ["OFFPATH_RUNTIME_DIR"] = str(path)
    yield
    openmp_support.remove_registrations_of_the_dead()
    if before is None:
        del os.environ["OFFPATH_RUNTIME_DIR"]
    else:
        os.environ["OFFPATH_RUNTIME_DIR"] = before


@pytest.fixture(scope="module")
def emulated(folder):
    with standing_device("arm", "aarch64", folder) as record:
        yield record


@pytest.fixture
def device(request):
    """Variables for one device of the architecture that the test is parametrised with."""
    arch = request.getfixturevalue("arch")
    return seen_by(local=1) if arch == "x86_64" else seen_by(request.getfixturevalue("emulated"))


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", CHECKED)
def test_program(name, arch, device, build):
    result = succeeded(run(build(name), env=device))
    assert result.stdout.endswith("all is right\n") and result.stderr == ""


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_hello_of_one_architecture(arch, device, build, folder, request):
    program = folder / f"hello_{arch}"
    build.compile([PROGRAMS / "hello.c", "-o", program], TARGETS[arch])
    result = succeeded(run(program, env=device))
    said = result.stdout if arch == "x86_64" else Path(request.getfixturevalue("emulated").log).read_text()
    assert f"Hello from {arch}" in said


@arm
def test_regions_call_a_shared_library_that_exists_for_each_machine(build, folder, emulated):
    """The source's way: the host's library with -l, the device's with --device-linker."""
    log = str(PROGRAMS / "log.c")
    subprocess.run(["gcc", "-shared", "-fPIC", log, "-o", folder / "liblog_x86.so"], check=True)
    subprocess.run(["aarch64-linux-gnu-gcc", "-shared", "-fPIC", log, "-o", folder / "liblog_aarch64.so"], check=True)
    build.compile(
        [PROGRAMS / "library.c", "-o", "library", "-L.", "-llog_x86", f"-Wl,-rpath,{folder}",
         f"-Wl,--device-linker=-L.,--device-linker=-llog_aarch64,--device-linker=-rpath={folder}"],
        TARGETS["aarch64"],
    )  # fmt: skip
    result = succeeded(run(folder / "library", env=seen_by(emulated)))
    assert result.stdout == "x86_64: on the host\n"
    assert "aarch64: in the region" in Path(emulated.log).read_text()


@requires(None if shutil.which("aarch64-linux-gnu-ld") else "no linker for aarch64. Run: make setup")
def test_device_code_is_linked_without_a_c_library_of_its_machine(folder):
    """clang names crti.o and the like without a folder where it finds no such library."""
    (folder / "region.c").write_text("int counted;\nint count(void) { return ++counted; }\n")
    subprocess.run(["clang-14", "--target=aarch64-linux-gnu", "-fPIC", "-c", "region.c"], cwd=folder, check=True)
    linker = paths().prefix / "libexec" / "offpath" / "compiler" / "ld"
    command = [linker, "-m", "aarch64linux", "-shared", "-o", "region.so", "crti.o", "crtbeginS.o", "region.o",
               "-lomp", "-lc", "crtendS.o", "crtn.o"]  # fmt: skip
    succeeded(captured(command, cwd=folder))
    dynamic = subprocess.check_output(["readelf", "-dhW", "region.so"], cwd=folder, text=True)
    assert "AArch64" in dynamic and "[libomp.so.5]" in dynamic


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_library_with_regions_and_sources_compiled_on_their_own(arch, device, build, folder):
    triple = TARGETS[arch]
    library = folder / f"libscale_{arch}.so"
    (folder / "scale.map").write_text("{ global: scale; local: *; };\n")
    build.compile(
        ["-fPIC", "-shared", "-Wl,--version-script=scale.map", PROGRAMS / "scale_library.c", "-o", library], triple
    )
    for part in ("scale_main", "scale_part"):
        build.compile(["-c", PROGRAMS / f"{part}.c", "-o", f"{part}_{arch}.o"], triple)
    build.compile(
        [f"scale_main_{arch}.o", f"scale_part_{arch}.o", "-o", f"scale_{arch}", "-L.", f"-lscale_{arch}",
         f"-Wl,-rpath,{folder}"], triple,
    )  # fmt: skip
    succeeded(run(folder / f"scale_{arch}", env=device))


def limited(mask: int, stack: int):
    """For a child process: its umask and its soft limit of the stack."""

    def limit() -> None:
        os.umask(mask)
        resource.setrlimit(resource.RLIMIT_STACK, (stack, resource.getrlimit(resource.RLIMIT_STACK)[1]))

    return limit


def test_regions_have_their_own_programs_limits(build):
    """Not those of the program for which the device service was started; and long stacks where there is no limit."""
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    if hard != resource.RLIM_INFINITY:
        pytest.skip("the stack has a hard limit here")
    with contextlib.ExitStack() as stack:
        cases = (0o077, 4 << 20, "77 4194304"), (0o027, 6 << 20, "27 6291456"), (0o002, hard, "2 -1")
        for mask, bytes_, said in cases:
            program = stack.enter_context(
                subprocess.Popen([build("limits")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                 env=os.environ | seen_by(local=1), preexec_fn=limited(mask, bytes_))
            )  # fmt: skip
            stack.callback(program.stdin.close)
            assert program.stdout.readline().strip() == said


def test_as_many_programs_as_a_large_node_has_cores(build):
    """Each device is what a program would have."""
    result = run(build("limits"), env=seen_by(local=66))
    assert result.returncode == 0 and result.stderr == "", (result.stdout, result.stderr)


def test_regions_write_to_the_programs_streams(build):
    result = run(build("streams"), env=seen_by(local=1))
    assert (result.returncode, result.stdout, result.stderr) == (0, "to stdout\n", "to stderr\n")


def test_several_devices_in_one_program(build):
    result = run(build("devices"), env=seen_by(local=3))
    assert result.returncode == 0 and result.stderr == "", (result.stdout, result.stderr)
    assert len(result.stdout.splitlines()) == 4


@arm
def test_several_devices_of_each_architecture_in_one_program(build, folder, emulated):
    with standing_device("second", "aarch64", folder, Path(emulated.key_file)) as second:
        result = succeeded(run(build("devices"), env=seen_by(emulated, second, local=2)))
        lines = [line.split() for line in result.stdout.splitlines()[:-1]]
        assert [words[1] for words in lines] == ["x86_64", "x86_64", "aarch64", "aarch64"]
        targets = f"{TARGETS['aarch64']},{TARGETS['x86_64']}"
        build.compile([PROGRAMS / "devices.c", "-o", "devices_arm_first"], targets)
        result = succeeded(run(folder / "devices_arm_first", env=seen_by(emulated, second, local=2)))
        lines = [line.split() for line in result.stdout.splitlines()[:-1]]
        assert [words[1] for words in lines] == ["aarch64", "aarch64", "x86_64", "x86_64"]


def test_plain_clang_with_the_documented_flags(folder):
    lib = openmp_support.paths().lib
    words = ["clang-14", "-O2", "-fopenmp", f"-fopenmp-targets={TARGETS['x86_64']}", str(PROGRAMS / "hello.c")]
    subprocess.run([*words, "-o", folder / "plain"], check=True, timeout=LIMIT_S)
    result = run(folder / "plain", env={"LD_LIBRARY_PATH": str(lib), **seen_by(local=1)})
    assert result.returncode == 0 and "Hello from x86_64" in result.stdout, result.stderr


@requires(None if shutil.which("gfortran") else "gfortran is missing. Run: make setup")
def test_fortran_has_the_devices_through_c_functions(build, folder):
    subprocess.run(["gfortran", "-fopenmp", "-c", PROGRAMS / "fortran.f90"], cwd=folder, check=True)
    objects = [PROGRAMS / "fortran_part.c", "fortran.o"]
    build.compile([*objects, "-o", "fortran", "-lgfortran", "-lgomp"], TARGETS["x86_64"])
    result = run(folder / "fortran", env=seen_by(local=1))
    assert (result.stdout, result.stderr) == ("T 0 42.0\n", ""), result


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel(kernel, arch, device):
    """On the software DPU a tenth of the usual size, under the emulator the small one: against the host each time."""
    program = openmp_support.paths().apps / "openmp" / "accel"
    result = succeeded(run(program, "--kernel", kernel, "--small", env=device))
    assert "ok" in result.stdout and result.stderr == ""


def test_the_verbose_switch_names_what_device_code_does_without(build, folder, monkeypatch):
    if openmp_support.missing_for("aarch64"):
        pytest.skip(openmp_support.missing_for("aarch64"))
    (folder / "empty.c").write_text("int empty;\n")
    subprocess.run(["gcc", "-shared", "-fPIC", folder / "empty.c", "-o", folder / "libonlyhost.so"], check=True)
    monkeypatch.setenv("OFFPATH_CC_VERBOSE", "1")
    result = build.compile(["-L.", "-lonlyhost", PROGRAMS / "hello.c", "-o", "verbose"], TARGETS["aarch64"])
    assert "-lonlyhost does not exist for aarch64: left out of the device code" in result.stderr


def test_the_compiler_explains_itself():
    for language in ("c", "c++"):
        result = run(openmp_support.compiler(language), "--help")
        assert result.returncode == 0 and "--device-linker" in result.stdout
    result = run(openmp_support.compiler(), env={"OFFPATH_CLANG": "no-such-clang"})
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1
    result = run(openmp_support.compiler(), str(PROGRAMS / "hello.c"), env={"OFFPATH_CLANG": "no-such-clang"})
    assert result.returncode == 1 and "Install clang-14" in result.stderr


@pytest.mark.nightly
def test_emulation_is_tested_wherever_the_tools_are():
    """The aarch64 tests above are skipped by name where tools are missing; in CI, which installs them, none may be."""
    if os.environ.get("CI"):
        assert openmp_support.missing_for("aarch64") is None
    assert (ROOT / "tools" / "setup-aarch64").exists()
