# SPDX-License-Identifier: BSD-3-Clause
"""Packages: the Debian one is installed on a bare Debian. Recipes for tools that are not here are read as text."""

import ast
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, captured, requires_root, succeeded
from offpath import __version__

PACKAGING = ROOT / "packaging"
SPACK = PACKAGING / "spack" / "package.py"
EASYCONFIG = next((PACKAGING / "easybuild").glob("*.eb"))
# As Spack and EasyBuild name what CMake looks for.
NEEDED = {
    "ucx": "ucx", "libsodium": "libsodium",
    "nlohmann_json": "nlohmann-json", "fftw3": "fftw", "liblz4": "lz4", "libzstd": "zstd", "libdeflate": "libdeflate",
}  # fmt: skip


def needed() -> set[str]:
    """What the build files ask for without an "if there is"."""
    text = "".join(file.read_text() for folder in (".", "src", "cmake", "apps") for file in found(folder))
    asked = re.findall(
        r"find_package\((\w+) REQUIRED|pkg_check_modules\(\w+ REQUIRED IMPORTED_TARGET ([\w -]+)\)", text
    )
    names = {name for words in asked for word in words for name in word.split()}
    return {NEEDED[name] for name in names if name in NEEDED}


def found(folder):
    return [*(ROOT / folder).rglob("CMakeLists.txt")] if folder != "." else [ROOT / "CMakeLists.txt"]


def test_one_version_everywhere():
    assert f"offpath ({__version__}-" in (PACKAGING / "debian" / "changelog").read_text()
    assert f'version = "{__version__}"\n' in (ROOT / "python" / "pyproject.toml").read_text()
    assert f"project(offpath VERSION {__version__} " in (ROOT / "CMakeLists.txt").read_text()
    assert f"Offpath-{__version__}-" in EASYCONFIG.name and f"version = '{__version__}'" in EASYCONFIG.read_text()


def test_the_spack_recipe_names_what_the_build_needs():
    tree = ast.parse(SPACK.read_text())
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "depends_on"
    ]
    names = {re.match(r"[\w-]+", call.args[0].value)[0] for call in calls}
    assert needed() <= names and {"mpi", "cmake", "ninja", "python"} <= names, needed() - names


def test_the_easyconfig_names_what_the_build_needs():
    values: dict = {}
    exec(compile(EASYCONFIG.read_text(), EASYCONFIG.name, "exec"), values)  # plain assignments
    names = {name.lower().replace("_", "-") for name, _ in values["dependencies"] + values["builddependencies"]}
    assert needed() <= names, needed() - names
    assert values["easyblock"] == "CMakeNinja" and values["toolchain"] and values["moduleclass"] == "mpi"


def test_the_container_takes_what_make_deb_makes():
    text = (PACKAGING / "apptainer" / "offpath.def").read_text()
    assert {"%files", "%post", "%test", "%runscript"} <= set(re.findall(r"^%\w+", text, re.MULTILINE))
    assert "build/deb/offpath_*.deb" in text and "build/deb" in (ROOT / "tools" / "deb").read_text()
    post = re.search(r"^%post\n(.*?)^%", text, re.DOTALL | re.MULTILINE)[1]
    assert subprocess.run(["sh", "-n"], input=post, text=True).returncode == 0


STUB = (
    "proc module-whatis {args} {}\nproc conflict {args} {}\nproc append-path {args} {}\n"
    'proc prepend-path {name value} {puts "$name $value"}\n'
)
WANTED = {
    "PATH": "bin", "MANPATH": "share/man", "CMAKE_PREFIX_PATH": "", "PKG_CONFIG_PATH": "lib/pkgconfig",
}  # fmt: skip
# What `module` runs: of Environment Modules, and of Lmod.
TOOLS = {"tcl": "usr/lib/*/modulecmd.tcl", "lua": "usr/share/lmod/lmod/libexec/lmod"}


@pytest.mark.parametrize("kind", TOOLS)
def test_module_files_are_loaded(kind, tmp_path):
    """By the tool itself where it is installed. The system's manual pages stay."""
    tool = next(Path("/").glob(TOOLS[kind]), None)
    file = tmp_path / "offpath" / ("0.2.0.lua" if kind == "lua" else "0.2.0")
    file.parent.mkdir()
    shutil.copy(PACKAGING / "modulefiles" / f"offpath.{kind}", file)
    if tool is None:
        pytest.skip(f"the tool that reads {file.name} is not installed (make nightly installs one)")
    environment = {"PATH": os.environ["PATH"], "MODULEPATH": str(tmp_path)}
    said = captured([tool, "bash", "load", "offpath"], env=environment)
    printed = [line for line in said.stdout.splitlines() if line.split("=")[0] in WANTED]
    script = "\n".join(printed) + '\nprintf "%s\\n" "$PATH" "$MANPATH" "$CMAKE_PREFIX_PATH" "$PKG_CONFIG_PATH"'
    found = captured(["bash", "-c", script], env=environment).stdout.splitlines()
    for value, folder in zip(found, WANTED.values(), strict=True):
        assert value.split(":")[0] == f"/opt/offpath/{folder}".rstrip("/"), (value, said.stderr)
    assert found[1].endswith(":"), "MANPATH hides the system's pages"


def test_module_files_lead_to_what_is_installed():
    tcl = shutil.which("tclsh")
    text = (PACKAGING / "modulefiles" / "offpath.tcl").read_text()
    if tcl:
        said = captured([tcl], input=STUB + text)
        assert said.returncode == 0 and "PATH /opt/offpath/bin\n" in said.stdout, said.stderr
    lua = (PACKAGING / "modulefiles" / "offpath.lua").read_text()
    of_tcl = re.findall(r"^prepend-path (\w+) \$prefix/?(\S*)", text, re.MULTILINE)
    of_lua = re.findall(r'^prepend_path\("(\w+)", (?:pathJoin\(prefix, "(\S+)"\)|prefix)\)', lua, re.MULTILINE)
    assert dict(of_tcl) == dict(of_lua) == WANTED
    if luac := shutil.which("luac") or shutil.which("luac5.4"):
        assert subprocess.run([luac, "-p", PACKAGING / "modulefiles" / "offpath.lua"]).returncode == 0


@pytest.mark.nightly
def test_easybuild_finds_all_dependencies(tmp_path):
    """EasyBuild of PyPI, with its own easyconfigs and its check of style; nothing is built."""
    venv = tmp_path / "venv"
    subprocess.run(["/usr/bin/python3", "-m", "venv", venv], check=True)
    subprocess.run([venv / "bin" / "pip", "install", "--quiet", "easybuild==5.4.1", "pycodestyle"], check=True)
    (tmp_path / f"offpath-{__version__}.tar.gz").touch()
    home = tmp_path / "modules" / "libexec"  # where EasyBuild looks; Debian has it elsewhere
    environment = {
        "PATH": f"{venv}/bin:{os.environ['PATH']}", "HOME": str(tmp_path), "MODULESHOME": str(home.parent),
        "EASYBUILD_PREFIX": str(tmp_path / "prefix"), "EASYBUILD_MODULES_TOOL": "EnvironmentModules",
        "EASYBUILD_MODULE_SYNTAX": "Tcl", "EASYBUILD_ALLOW_MODULES_TOOL_MISMATCH": "1",
    }  # fmt: skip
    tool = next(Path("/").glob(TOOLS["tcl"]), None)
    if tool is None:
        pytest.skip("Environment Modules is not installed (make nightly installs it)")
    home.mkdir(parents=True)
    (home / "modulecmd.tcl").symlink_to(tool)
    root = ["--allow-use-as-root-and-accept-consequences"] if os.geteuid() == 0 else []
    for asked in (["--check-style"], ["--dry-run", "--robot"]):
        command = [venv / "bin" / "eb", *root, *asked, EASYCONFIG]
        said = succeeded(captured(command, env=os.environ | environment, timeout=None))
    assert f"Offpath/{__version__}-foss-2024a" in said.stdout and "UCX/1.16.0" in said.stdout


PROGRAM = "/usr/lib/offpath/libexec/offpath/bench/mpich/collectives --sizes 1048576 --repeats 2 --verify"
ON_A_BARE_DEBIAN = f"""
start=$(date +%s)
apt-get install -y --no-install-recommends /tmp/*.deb >/dev/null 2>&1 || exit 1
echo "installed in $(($(date +%s) - start)) s, $(du -sk /usr/lib/offpath | cut -f1) KiB"
cd /tmp && offpath --version && offpathd --version && offpath split pipecg >/dev/null
printf '#include <offpath/offpath.h>\\n' >/tmp/x.h && test -s /usr/include/offpath/offpath.h
test -s /usr/share/man/man1/offpath-run.1.gz && test -s /usr/share/bash-completion/completions/offpath
ldconfig -p | grep -q liboffpath.so.0 || exit 1
offpath run --share --policy '*:dpu' -- mpirun -np 2 {PROGRAM}
echo "offloaded after $(($(date +%s) - start)) s"
offpath plan scale --nodes 2 --html scale.html 2>&1 | grep 'matplotlib is not installed'
apt-get remove -y offpath >/dev/null 2>&1
find / -xdev -name '*offpath*' ! -path '/tmp/*' ! -path '/proc/*' | sed 's/^/left: /'
"""


def made(suite: str, folder: Path) -> Path:
    """The package, clean by lintian, as it is made there: on this machine, or by a fresh clone in a root tree."""
    if f"VERSION_CODENAME={suite}\n" in Path("/etc/os-release").read_text():
        home, command = ROOT, [ROOT / "tools" / "deb"]
    else:
        home = folder / "tree" / "root" / "offpath"
        get = "apt-get update -qq && apt-get install -y -qq --no-install-recommends debhelper >/dev/null 2>&1"
        command = [ROOT / "tools/debian", "--tree", folder / "tree", suite, "sh", "-c", f"{get}; make deb"]
    succeeded(captured(command, timeout=None))
    changes = next((home / "build" / "deb").glob("*.changes"))
    checked = captured(["lintian", "--allow-root", changes], timeout=None)
    assert checked.stdout == "", checked.stdout
    return next((home / "build" / "deb").glob("*.deb"))


@requires_root
@pytest.mark.nightly
@pytest.mark.parametrize("suite", ["bookworm", "trixie"])  # Debian 12 and 13
def test_the_debian_package_on_a_bare_debian(suite, tmp_path):
    """Made, installed where nothing else is, used with Debian's MPICH, and removed without a trace."""
    package = made(suite, tmp_path)
    (tmp_path / "try").write_text(ON_A_BARE_DEBIAN)
    hooks = [f"copy-in {package} {tmp_path}/try /tmp", 'chroot "$1" sh -e /tmp/try']
    command = ["mmdebstrap", "--variant=apt", "--include=mpich", *(f"--customize-hook={hook}" for hook in hooks)]
    result = succeeded(captured([*command, suite, "/dev/null"], timeout=None))
    said = result.stdout + result.stderr
    print(
        f"{Path(package).stat().st_size} bytes",
        *re.findall(r"^(?:installed in|offloaded after).*$", said, re.MULTILINE),
    )
    assert f"offpath {__version__}" in said and "matplotlib is not installed" in said
    assert re.search(r"2 ranks on 1 node \(MPICH\): \d+ collectives, [1-9]\d* offloaded", said)
    assert not re.findall("^left: .*", said, re.MULTILINE)


@requires_root
@pytest.mark.nightly
def test_the_demo_on_a_bare_debian():
    """What README has a newcomer type first, where there is nothing but apt, git and make."""
    done = succeeded(captured([ROOT / "tools/debian", "bookworm", "make", "demo"], timeout=None))
    assert re.search(r"times faster end to end: .* \(same result, verified\)", done.stdout), done.stdout[-3000:]


UNIT = (PACKAGING / "offpathd.service.in").read_text()
requires_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze. Install systemd"
)


def of_the_unit(name: str) -> str:
    return " ".join(re.findall(rf"^{name}=(.*)$", UNIT, re.MULTILINE))


@requires_systemd
def test_the_unit_is_contained(tmp_path):
    """What systemd says of it. What is left is what jobs need: the administrators' guide names just that."""
    unit = tmp_path / "offpathd.service"
    unit.write_text(UNIT.replace("@bin@/offpathd", "/bin/true"))
    security = ["security", "--offline=true", "--threshold=24", "--no-pager"]
    said = ""
    for words in (["verify"], security, [*security, "--json=short"]):
        done = captured(["systemd-analyze", *words, unit])
        assert done.returncode == 0 and "Unknown" not in done.stderr, done.stdout + done.stderr
        said += done.stdout
    score = re.search(r"Overall exposure level for offpathd.service: ([\d.]+)", said)[1]
    counted = {each["name"] for each in json.loads(done.stdout) if float(each["exposure"] or 0) > 0}
    guide = (ROOT / "docs/guide-administration.md").read_text()
    assert f"gives the unit {score} of 10 (9.6 without its restrictions)" in guide
    rows = re.search(r"\| what it would have .*?\n\n", guide, re.DOTALL)[0]
    named = [name.replace("\\|", "|") for name in re.findall(r"`([A-Z~][^`]*[=)\w])`", rows)]
    assert all(any(name in each for name in named) for each in counted), counted
    assert all(any(name in each for each in counted) for name in named), named


def test_the_unit_serves_nobody_else_unless_told():
    assert "--listen ${LISTEN} " in of_the_unit("ExecStart") and of_the_unit("IPAddressAllow") == "localhost"
    assert of_the_unit("Environment") == "LISTEN=127.0.0.1:7001" and of_the_unit("IPAddressDeny") == "any"
    told = re.search(
        r"\[Service\]\n +Environment=LISTEN=\S+:7001\n +IPAddressAllow=", (ROOT / "docs/guide-dpu.md").read_text()
    )
    assert told, "the guide does not say how others are let in"


# Of a service, what it starts, and users' code: memory of ranks, memory that is shared, cores, users.
CALLS = {
    "process_vm_readv", "process_vm_writev", "memfd_create", "pidfd_open", "sched_setaffinity", "sched_setattr",
    "setuid", "setgid", "setgroups", "setrlimit", "prctl", "mprotect", "close_range", "recvmmsg", "get_mempolicy",
}  # fmt: skip


@requires_systemd
def test_the_unit_lets_through_what_services_call():
    wanted, allowed = [of_the_unit("SystemCallFilter")], set()
    while wanted:
        said = captured(["systemd-analyze", "syscall-filter", wanted.pop()])
        for word in said.stdout.split("\n    ")[1:]:
            (wanted.append if word.startswith("@") else allowed.add)(word.strip())
    assert allowed >= CALLS, CALLS - allowed
    assert not allowed & {"ptrace", "bpf", "mount", "init_module", "kexec_load", "perf_event_open"}


@requires_root
@pytest.mark.parametrize("program", ["starting_test", "device_service_test"])
def test_a_starter_serves_users_where_the_unit_contains_it(program):
    """As systemd does it: without most of root's rights, and /proc hides other users' processes from users."""
    path = ROOT / "build" / "release" / "bin" / program
    if not path.exists():
        pytest.skip("the unit tests are not built. Run: make programs")
    rights = ",".join("+" + name.removeprefix("CAP_").lower() for name in of_the_unit("CapabilityBoundingSet").split())
    inside = (
        f"mount -t proc -o hidepid={of_the_unit('ProtectProc')} proc /proc && "
        f"exec setpriv --no-new-privs --bounding-set=-all,{rights} {path} --gtest_filter=*Job*:*Stopped*"
    )
    succeeded(captured(["unshare", "--mount", "sh", "-c", inside], timeout=None))
