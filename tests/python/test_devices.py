# SPDX-License-Identifier: BSD-3-Clause
"""`offpath devices` and `offpath device`: what they list, start and stop, and what they refuse."""

import json
import os
import signal

import openmp_support
import pytest
from conftest import assert_one_line_error, offpath, requires_root, succeeded
from openmp_support import requires, run

pytestmark = requires(openmp_support.missing_compiler())
arm = requires(openmp_support.missing_for("aarch64"))


@pytest.fixture
def env(tmp_path):
    """Folders of our own; whatever runs there at the end is stopped."""
    (tmp_path / "run").mkdir(mode=0o700)
    variables = {"OFFPATH_RUNTIME_DIR": str(tmp_path / "run"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    yield variables
    offpath("device", "stop", "--all", env=variables)


def listed(env: dict) -> list[dict]:
    result = succeeded(offpath("devices", "--json", env=env))
    return json.loads(result.stdout)


def test_the_default_is_a_software_dpu(env):
    (row,) = listed(env)
    assert (row["number"], row["kind"], row["architecture"], row["state"]) == (0, "software", os.uname().machine, "up")
    assert row["cores"] >= 1 and row["memory_bytes"] > 1 << 20
    table = offpath("devices", env=env)
    assert table.returncode == 0 and "software" in table.stdout


def test_a_standing_device_is_listed_used_and_stopped(env):
    started = succeeded(offpath("device", "start", "near", env=env))
    exported = dict(word.split("=", 1) for word in started.stdout.removeprefix("export ").split())
    assert exported["OFFPATH_DEVICES"].startswith("near=127.0.0.1:")
    key = exported["OFFPATH_DEVICE_KEY_FILE"]
    assert os.stat(key).st_mode & 0o77 == 0
    rows = listed(env)
    assert [(row["name"], row["number"], row["state"]) for row in rows][1] == ("near", None, "not listed")
    (row,) = listed(env | exported)
    assert (row["name"], row["kind"], row["number"]) == ("near", "remote", 0)
    assert_one_line_error(offpath("device", "start", "near", env=env), "near", "runs already")
    assert offpath("device", "stop", "near", env=env).returncode == 0
    assert_one_line_error(offpath("device", "stop", "near", env=env), "No device named near")
    (row,) = listed(env | exported)
    assert row["state"] == "down" and row["number"] is None


@arm
def test_an_emulated_device_says_so(env):
    started = succeeded(offpath("device", "start", "arm", "--arch", "aarch64", env=env))
    exported = dict(word.split("=", 1) for word in started.stdout.removeprefix("export ").split())
    (row,) = listed(env | exported)
    assert (row["kind"], row["architecture"], row["state"]) == ("emulated", "aarch64", "up")
    info = "/usr/lib/llvm-14/bin/llvm-omp-device-info"
    if os.path.exists(info):
        found = run(info, env=env | exported | {"LD_LIBRARY_PATH": str(openmp_support.paths().lib)})
        assert "arm" in found.stdout + found.stderr


def test_a_device_that_was_killed_is_forgotten(env):
    succeeded(offpath("device", "start", "gone", env=env))
    with open(f"{env['OFFPATH_RUNTIME_DIR']}/devices/gone.json") as file:
        os.kill(json.load(file)["pid"], signal.SIGKILL)
    assert offpath("device", "start", "gone", env=env).returncode == 0


@pytest.mark.parametrize(
    "arguments, word",
    [
        (["start", "--listen", "127.0.0.1:port"], "not an address"),
        (["start", "--listen", "192.0.2.1:7001"], "listen"),
        (["start", "3"], "name"),
        (["start", "--memory", "much"], "not a size"),
        (["start", "--key-file", "/no/such/key"], "not a file"),
        (["start", "--cores", "banana"], "not a list of cores"),
        (["start", "--cores", "1000000"], "cores"),
        (["start", "--arch", "riscv"], "riscv"),
    ],
)
def test_what_cannot_be_started_is_one_line(env, arguments, word):
    assert_one_line_error(offpath("device", *arguments, env=env), word)


def test_a_wrong_list_is_one_line(env):
    assert_one_line_error(offpath("devices", env=env | {"OFFPATH_DEVICES": "a=b=c"}), "a=b=c")


@requires_root
@pytest.mark.parametrize("arch", [os.uname().machine, pytest.param("aarch64", marks=arm)])
def test_programs_in_a_lab_use_their_nodes_dpu(lab_name, tmp_path, arch):
    from offpath.lab import Lab

    build = openmp_support.Builder(tmp_path)
    program = tmp_path / "program"
    build.compile([openmp_support.PROGRAMS / "hello.c", "-o", program])
    with Lab(nodes=2, name=lab_name, dpu_arch=arch) as lab:
        succeeded(lab.mpirun("openmpi", 1, [str(program)]))
        for node in lab.plan.nodes:
            log = lab.plan.state_dir / node / "device.log"
            assert log.read_text().count(f"Hello from {arch}") == 1
