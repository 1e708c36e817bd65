# SPDX-License-Identifier: BSD-3-Clause
"""Call sites: what is known of a place in programs that were built in all kinds of ways, and the regions and call sites
of real programs in C, Fortran and Python."""

import json
import os
import random
import re
import shutil
import subprocess
import sys

import pytest
from conftest import AS_ROOT, PROGRAMS, ROOT, captured, offpath, require, succeeded
from offpath.base.paths import paths
from offpath.launch import mpis
from offpath.telemetry import perfetto
from offpath.trace import sites

WHERE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
void where(void) {
  Dl_info info;
  char* address = __builtin_return_address(0);
  dladdr(address, &info);
  printf("%ld\\n", (long)(address - (char*)info.dli_fbase));
}
"""
CALLER = """\
extern "C" void where();
namespace far {
struct Solver {
  inline __attribute__((always_inline)) void send() {
    where();  // line 5
    asm volatile("");
  }
  template <typename T>
  __attribute__((noinline)) void step(T) {
    send();  // line 10
    asm volatile("");
  }
};
}
extern "C" void called() { far::Solver().step(1); }
"""
MAIN = "extern void called(void); int main(void) { called(); return 0; }"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sites")
    for name, text in (("where.c", WHERE), ("caller.cpp", CALLER), ("main.c", MAIN)):
        (folder / name).write_text(text)
    run(folder, "gcc -shared -fPIC where.c -o libwhere.so")
    return folder


def run(folder, command):
    result = succeeded(captured(["sh", "-c", command], cwd=folder))
    return result.stdout


def build(folder, name, flags, strip="true", compiler="g++"):
    """A program of that name, and the site of its call."""
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    run(folder, f"{compiler} -O2 {flags} -c caller.cpp -o {name}.o && gcc -O2 {flags} -c main.c -o {name}.main.o")
    run(folder, f"g++ {flags} {name}.main.o {name}.o -L. -lwhere -Wl,-rpath,$PWD -o {name} && {strip}")
    return look_up(folder / name, int(run(folder, f"./{name}")))


def look_up(file, offset):
    return sites.look_up([(str(file), offset)])[str(file), offset]


LINES = "send (caller.cpp:5) in step<int> (caller.cpp:10)"


@pytest.mark.parametrize(
    "name, compiler, flags",
    [("pie", "g++", "-g -fPIE -pie"), ("fixed", "g++", "-g -fno-pie -no-pie"), ("least", "g++", "-g1"),
     ("sections", "g++", "-g -ffunction-sections -Wl,-z,separate-code"), ("clang", "clang++-14", "-g"),
     ("dwarf4", "clang++-14", "-g -gdwarf-4")],
)  # fmt: skip
def test_lines_of_programs(built, name, compiler, flags):
    site = build(built, name, flags, compiler=compiler)
    assert site.text == LINES and site.source == "caller.cpp:5 in caller.cpp:10"
    assert [frame.file for frame in site.frames] == [str(built / "caller.cpp")] * 2


def test_lines_of_shared_objects(built):
    run(built, "g++ -O2 -g -shared -fPIC caller.cpp -L. -lwhere -Wl,-rpath,$PWD -o libcaller.so")
    offset = int(run(built, "gcc main.c -L. -lcaller -Wl,-rpath,$PWD -o user && ./user"))
    assert look_up(built / "libcaller.so", offset).text == LINES


def test_lines_from_a_debug_file(built):
    """As distributions split them off."""
    split = "objcopy --only-keep-debug split split.dbg && strip split && objcopy --add-gnu-debuglink=split.dbg split"
    assert build(built, "split", "-g", split).text == LINES


def test_symbols_where_there_are_no_lines(built):
    site = build(built, "plain", "")
    assert re.fullmatch(r"void far::Solver::step<int>\+0x[0-9a-f]+ \(plain\)", site.text)


def test_offsets_where_there_is_nothing(built):
    site = build(built, "bare", "", "strip bare")
    assert site.text == site.source == f"bare+{site.offset:#x}"
    assert look_up(built / "gone", 64).text == "gone+0x40"
    assert look_up(built / "main.c", 64).text == "main.c+0x40"


def test_damaged_programs_are_offsets_at_worst(built):
    """Whatever is in the file: an answer, or none, and no more than that."""
    build(built, "whole", "-g")
    whole = (built / "whole").read_bytes()
    random.seed(seed := random.randrange(2**32))
    for _ in range(40):
        damaged = bytearray(whole[: random.randrange(1, len(whole))])
        for _ in range(random.randrange(1, 200)):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        (built / "damaged").write_bytes(damaged)
        places = [(str(built / "damaged"), random.choice((0, 64, 4000, 1 << 40))) for _ in range(3)]
        assert set(sites.look_up(places)) == set(places), f"seed {seed}"


@pytest.mark.parametrize("question", ["", "{}", '[["x", ["1"]]]', '[["x"]]', "[" * 100_000])
def test_a_question_that_makes_no_sense_is_one_line(question):
    result = captured([paths().sites_program], input=question)
    assert (result.returncode, result.stdout) == (2, "") and result.stderr.count("\n") == 1


def test_what_is_kept_is_read_again(built):
    site = build(built, "kept", "-g")
    assert sites.from_json([json.loads(json.dumps(site.to_json()))]) == {(site.file, site.offset): site}
    for nonsense in (None, [7], [{"file": "x", "offset": 1}], [site.to_json() | {"frames": [[1]]}]):
        assert sites.from_json(nonsense) == {}


# ---- regions --------------------------------------------------------------------------------------------------------

MARK = """
#include <cstdio>
extern "C" void offpath_region_mark(const char* name, int begins) { printf("%s %d\\n", name, begins); }
"""


def marked(folder, source, *flags):
    """What a program tells a recorder, which is itself."""
    (folder / "program.cpp").write_text(MARK + source)
    command = ["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-rdynamic", f"-I{ROOT / 'include'}", *flags]
    subprocess.run([*command, folder / "program.cpp", "-o", folder / "program"], check=True)
    return captured([folder / "program"], check=True).stdout.split()


def test_a_region_in_cpp_ends_with_its_scope(tmp_path):
    source = """
    #include <offpath/offpath.hpp>
    int main() {
      const offpath::Region outer("outer");
      for (int i = 0; i < 2; ++i) const offpath::Region inner(std::string("in") + "ner");
    }
    """
    told = marked(tmp_path, source)
    assert told == ["outer", "1", *["inner", "1", "inner", "0"] * 2, "outer", "0"]


def test_the_region_of_the_guide(tmp_path):
    guide = (ROOT / "docs" / "guide-telemetry.md").read_text()
    (code,) = re.findall(r"```c\n(.*?)```", guide, re.DOTALL)
    include, calls = code.split("\n\n", 1)
    source = f"{include}\nstatic void assemble(int) {{}}\nint main() {{\n  int matrix = 0;\n{calls}}}\n"
    assert marked(tmp_path, source) == ["assemble", "1", "assemble", "0"]


# ---- real programs --------------------------------------------------------------------------------------------------


def line_of(source, words):
    """ "sited.c:17" for what stands behind "site: " there."""
    (number,) = [at for at, line in enumerate(source.read_text().splitlines(), 1) if f"site: {words}" in line]
    return f"{source.name}:{number}"


def launched(mpi, *command):
    extra = ["--oversubscribe"] if mpi == mpis.OPENMPI else []
    return [mpis.launcher(mpi), *extra, "-np", "2", *map(str, command)]


def traced(mpi, folder, *command):
    require(paths().backend_library(mpi))
    trace = folder / "t.json"
    succeeded(offpath(
        "run", "--share", "--policy", "ialltoall:64K-inf:dpu", "--trace", str(trace), "--job-name", "sited", "--",
        *launched(mpi, *command), env=AS_ROOT,
    ))  # fmt: skip
    return perfetto.load(trace)


@pytest.mark.machine
@pytest.mark.parametrize("mpi", [pytest.param(mpis.OPENMPI, marks=pytest.mark.nightly), mpis.MPICH])
def test_calls_and_regions_of_a_program_in_c(mpi, tmp_path):
    source = PROGRAMS / "sited.c"
    flags = ["-O2", "-g", f"-I{ROOT / 'include'}", "-Wall", "-Wextra", "-Werror", source, "-o", tmp_path / "sited"]
    subprocess.run([f"mpicc.{mpi}", *flags, "-lpthread"], check=True)
    succeeded(subprocess.run([tmp_path / "sited"], env=os.environ | AS_ROOT, timeout=60))
    run = traced(mpi, tmp_path, tmp_path / "sited")
    found = {(each.call, each.site.source) for each in run.operations}
    found |= {(wait.call, wait.site.source) for wait in run.waits[0]}
    inlined = f"{line_of(source, 'inlined')} in {line_of(source, 'around')}"
    expected = {("MPI_Ialltoall", inlined), ("MPI_Allreduce", line_of(source, "reduce")),
                ("MPI_Wait", line_of(source, "wait")), ("MPI_Barrier", line_of(source, "thread")),
                ("MPI_Waitsome", line_of(source, "some"))}  # fmt: skip
    assert found == expected
    where = {each.call: each.region.path for each in (*run.operations, *run.waits[1])}
    assert where == {"MPI_Ialltoall": "step/post", "MPI_Allreduce": "forgotten/inner", "MPI_Wait": "step",
                     "MPI_Waitsome": "forgotten/inner", "MPI_Barrier": "other thread"}  # fmt: skip
    for rank in (0, 1):
        regions = [each for each in run.regions if each.rank == rank]
        paths_of = [each.path for each in regions if not each.path.strip().isdecimal()]
        assert paths_of == ["step", "step/post"] * 3 + ["forgotten", "forgotten/inner", "other thread", "left open"]
        assert [each.path for each in regions if each.left_open] == ["left open"]
        assert {each.thread for each in regions} == {0, 1} and len(regions) == len(paths_of) + 1000
        assert max(len(each.name) for each in regions) == 255
        assert all(each.end_ns <= run.end_ns for each in regions)
    assert run.job.name == "sited"


@pytest.mark.machine
@pytest.mark.parametrize("mpi", [mpis.OPENMPI, pytest.param(mpis.MPICH, marks=pytest.mark.nightly)])
def test_calls_and_regions_of_a_program_in_fortran(mpi, tmp_path):
    """The calls come through the library's wrappers, which are not where the program made them."""
    source, module = PROGRAMS / "sited.f90", ROOT / "include" / "offpath" / "offpath_region.f90"
    flags = ["-Og", "-g", "-Wall", "-Werror", f"-J{tmp_path}", module, source, "-o", tmp_path / "sited"]
    subprocess.run([f"mpif90.{mpi}", *flags], check=True)
    succeeded(subprocess.run([tmp_path / "sited"], env=os.environ | AS_ROOT, timeout=60))
    run = traced(mpi, tmp_path, tmp_path / "sited")
    found = {(each.call, each.site.frames[0].source) for each in (*run.operations, *run.waits[0])}
    assert found == {("MPI_Ialltoall", line_of(source, "post")), ("MPI_Wait", line_of(source, "wait")),
                     ("MPI_Barrier", line_of(source, "barrier"))}  # fmt: skip
    assert {each.path for each in run.regions} == {"transpose"} and len(run.regions) == 6
    assert {each.region.path for each in run.operations if each.call == "MPI_Ialltoall"} == {"transpose"}
    profile = tmp_path / "p.jsonl"
    succeeded(offpath("profile", "-o", str(profile), "--", *launched(mpi, tmp_path / "sited"), env=AS_ROOT))
    (tmp_path / "sited").unlink()  # what was found is kept
    planned = json.loads(offpath("plan", str(profile), "--json").stdout)
    assert {(row["call"], row["site"]) for row in planned["sites"]} == {
        (each.call, each.site.text) for each in (*run.operations, *run.waits[0])
    }


@pytest.mark.machine
def test_regions_of_a_program_in_python(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "from mpi4py import MPI\nimport offpath\n"
        "@offpath.region('decorated')\ndef work():\n    MPI.COMM_WORLD.barrier()\n"
        "for _ in range(3):\n    with offpath.region('outer'):\n        work()\n"
    )
    alone = captured([sys.executable, "-c", "import offpath\nwith offpath.region('x'): print('ran')"])
    assert alone.stdout == "ran\n", alone.stderr
    variables = {**AS_ROOT, "PYTHONPATH": str(ROOT / "python")}
    trace = tmp_path / "t.json"
    result = offpath("run", "-q", "--share", "--trace", str(trace), "--",
                     *launched(mpis.OPENMPI, "/usr/bin/python3", script), env=variables)  # fmt: skip
    assert result.returncode == 0, result.stderr
    run = perfetto.load(trace)
    assert {each.path for each in run.regions} == {"outer", "outer/decorated"} and len(run.regions) == 12
    assert {each.region.path for each in run.operations if each.call == "MPI_Barrier"} == {"outer/decorated"}
