# SPDX-License-Identifier: BSD-3-Clause
"""Target regions when something is wrong: one clear line, never a hang, nobody else harmed."""

import contextlib
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time
from functools import partial
from pathlib import Path

import openmp_support
import pytest
from conftest import LIMIT_S, captured, eventually, succeeded
from openmp_support import PROGRAMS, TARGETS, requires, run, seen_by, standing_device
from test_openmp import ARCHITECTURES, arm, build, device, emulated, folder, own_runtime_folder  # noqa: F401

pytestmark = requires(openmp_support.missing_compiler())
HOST = {"OFFPATH_TEST_HOST": "1"}
ABORTED = (-signal.SIGABRT, 1)  # libomptarget aborts, or ends with 1
GREETING_BYTES, CHALLENGE_BYTES, PROOF_BYTES = 108, 80, 32  # src/seal/handshake.hpp


def offpath_lines(result: subprocess.CompletedProcess) -> list[str]:
    return [line for line in result.stderr.splitlines() if line.startswith("offpath:")]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    "way, word",
    [("segv", "SIGSEGV|[Ss]egmentation"), ("abort", "SIGABRT|[Aa]bort"), ("exit", r" exit\(3\)"),
     ("thread", "pthread_exit"), ("deep", "stack")],
)
def test_a_region_that_ends_its_device(way, word, arch, device, build):  # noqa: F811
    result = run(build("crash"), way, env=device)
    assert result.returncode in ABORTED and "went on" not in result.stdout
    lines = offpath_lines(result)
    assert len(lines) == 1, result.stderr
    assert re.search(word, lines[0]) and "main" in lines[0] and "device 0" in lines[0]
    # Others, and later programs, have their devices.
    assert run(build("crash"), "none", env=device).stdout.endswith("went on\n")


@pytest.mark.parametrize("way", ["background", "fork"])
def test_a_crash_after_a_region_has_started_something(way, build):  # noqa: F811
    """Which lives on, and must not hold the device's channel."""
    result = run(build("crash"), way, env=seen_by(local=1))
    os.kill(int(result.stdout.split()[-1]), signal.SIGKILL)
    assert result.returncode in ABORTED and "device 0" in offpath_lines(result)[0], result.stderr


@pytest.mark.parametrize("left", range(12))
def test_a_program_with_few_descriptors_left(left, build):  # noqa: F811
    result = run(build("descriptors"), str(left), env=seen_by(local=1))
    if result.returncode != 0:
        (line,) = offpath_lines(result)
        assert "ulimit -n" in line, result.stderr
    assert result.returncode in ((0,) if left == 11 else (0, *ABORTED))


def test_a_program_whose_standard_descriptors_are_closed(build):  # noqa: F811
    """What it writes there all the same must not go to its device."""
    close = partial(os.closerange, 0, 3)
    program = [build("closed")]
    assert subprocess.run(program, env=os.environ | seen_by(local=1), preexec_fn=close, timeout=LIMIT_S).returncode == 0
    assert run(build("crash"), "none", env=seen_by(local=1)).stdout.endswith("went on\n")


def test_a_program_with_little_address_space(build):  # noqa: F811
    program = build("crash")
    limit = partial(resource.setrlimit, resource.RLIMIT_AS, (1 << 30, 1 << 30))
    env = os.environ | seen_by(local=1) | {"OFFPATH_DEVICE_MEMORY_BYTES": str(2 << 30)}
    result = captured([program, "none"], env=env, preexec_fn=limit)
    assert result.returncode in ABORTED
    (line,) = [each for each in result.stderr.splitlines() if "offpath" in each]
    assert "ulimit -v" in line and "OFFPATH_DEVICE_MEMORY_BYTES" in line


def test_unified_shared_memory(folder, build):  # noqa: F811
    """Otherwise its regions would crash at the host's addresses."""
    (folder / "unified.c").write_text(
        "#pragma omp requires unified_shared_memory\n"
        "int main(int count, char **words) {\n"
        "#pragma omp target\n  words[0][0] = 'x';\n  return 0;\n}\n"
    )
    build.compile(["unified.c", "-o", folder / "unified"], TARGETS["x86_64"])
    result = run(folder / "unified", env=seen_by(local=1))
    assert result.returncode in ABORTED
    (line,) = offpath_lines(result)
    assert "unified_shared_memory" in line


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_device_that_is_killed_in_a_region(arch, device, build):  # noqa: F811
    program = subprocess.Popen(
        [build("crash"), "wait"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | device
    )
    process = int(program.stdout.readline().split()[-1])
    time.sleep(0.1)  # so that it is mostly inside of the region; before it, the outcome is the same
    os.kill(process, signal.SIGKILL)
    _, errors = program.communicate(timeout=LIMIT_S)
    assert program.returncode in ABORTED
    lines = [line for line in errors.splitlines() if line.startswith("offpath:")]
    assert len(lines) == 1 and "device 0" in lines[0], errors


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_symbol_that_the_device_has_not(arch, device, build, folder):  # noqa: F811
    program = folder / f"missing_{arch}"
    build.compile([PROGRAMS / "missing_symbol.c", PROGRAMS / "missing_host.c", "-o", program], TARGETS[arch])
    result = run(program, env=device)
    assert result.returncode in ABORTED
    assert len(offpath_lines(result)) == 1 and "only_on_the_host" in offpath_lines(result)[0], result.stderr
    assert run(program, env={"OFFPATH_DEVICES": "none"}).returncode == 0


@pytest.mark.parametrize("only, devices", [("x86_64", "far=127.0.0.1:1/aarch64"), ("aarch64", "local")])
def test_a_program_for_another_processor_than_any_device_is_told(only, devices, build, folder):  # noqa: F811
    """libomptarget would run its regions on the host without a word."""
    if only == "aarch64" and shutil.which("aarch64-linux-gnu-ld") is None:
        pytest.skip("it cannot be linked here")
    program = folder / f"only_{only}"
    build.compile([PROGRAMS / "hello.c", "-o", program], TARGETS[only])
    result = succeeded(run(program, env={"OFFPATH_DEVICES": devices}))
    (line,) = offpath_lines(result)
    assert f"no device for {only}" in line and "run on the host" in line and "OFFPATH_DEVICES" in line
    asked_for = run(program, env={"OFFPATH_DEVICES": "none"})
    assert asked_for.returncode == 0 and offpath_lines(asked_for) == []


@pytest.mark.parametrize("when", ["early", "late"])
@pytest.mark.parametrize("where", ["local", "remote"])
def test_fork(when, where, build, tmp_path):  # noqa: F811
    """The child has devices of its own, or, once its parent has used them, none; the parent's go on."""
    with contextlib.ExitStack() as stack:
        env = seen_by(local=1)
        if where == "remote":
            env = seen_by(stack.enter_context(standing_device("forked", "x86_64", tmp_path)))
        result = run(build("fork"), when, env=env)
    assert result.returncode == 0 and result.stdout.endswith("all is right\n"), (result.stdout, result.stderr)
    if when == "early":
        assert "the child ended with 0" in result.stdout and result.stderr == "", (result.stdout, result.stderr)
    else:
        (line,) = offpath_lines(result)
        assert "fork" in line and "device 0" in line and "the child ended with 0" not in result.stdout


DOWN = {"OFFPATH_DEVICES": "far=127.0.0.1:1/x86_64", "OFFPATH_DEVICE_TIMEOUT_MS": "2000"}


@pytest.fixture
def some_key(tmp_path):
    key = tmp_path / "key"
    key.write_text("0123456789abcdef0123456789abcdef")
    key.chmod(0o600)
    return {"OFFPATH_DEVICE_KEY_FILE": str(key)}


def test_a_device_that_is_down_is_named_and_the_host_runs_the_program(build, some_key):  # noqa: F811
    result = succeeded(run(build("parallel"), env=DOWN | HOST | some_key))
    lines = offpath_lines(result)
    assert len(lines) == 1 and "far" in lines[0]


def test_a_device_that_is_down_and_mandatory_offload(build, some_key):  # noqa: F811
    result = run(build("parallel"), env=DOWN | some_key | {"OMP_TARGET_OFFLOAD": "mandatory"})
    assert result.returncode in ABORTED
    assert "far" in offpath_lines(result)[0]


def test_a_local_device_that_cannot_be_started(build):  # noqa: F811
    """libomptarget has counted it by then, and runs nothing on the host any more."""
    result = run(build("parallel"), env=seen_by(local=1) | {"OFFPATH_SERVICE_PATH": "/nonexistent/offpathd"})
    assert result.returncode in ABORTED
    assert "/nonexistent/offpathd" in offpath_lines(result)[0], result.stderr


def test_offload_disabled_runs_on_the_host_without_a_word(build):  # noqa: F811
    result = run(build("environments"), env=seen_by(local=1) | HOST | {"OMP_TARGET_OFFLOAD": "disabled"})
    assert result.returncode == 0 and result.stderr == "", (result.stdout, result.stderr)


def test_no_device_runs_on_the_host_without_a_word(build):  # noqa: F811
    result = run(build("asynchronous"), env={"OFFPATH_DEVICES": "none"} | HOST)
    assert result.returncode == 0 and result.stderr == "", (result.stdout, result.stderr)


@arm
def test_an_image_of_another_architecture_than_the_devices(build, folder):  # noqa: F811
    """A program for Arm alone, where there is only a software DPU: the host runs it."""
    build.compile([PROGRAMS / "parallel.c", "-o", "only_arm"], TARGETS["aarch64"])
    succeeded(run(folder / "only_arm", env=seen_by(local=1) | HOST))


@arm
def test_a_device_of_another_architecture_than_listed(build, emulated):  # noqa: F811
    env = seen_by(emulated) | HOST
    env["OFFPATH_DEVICES"] = env["OFFPATH_DEVICES"].replace("aarch64", "x86_64")
    result = succeeded(run(build("parallel"), env=env))
    assert "aarch64" in offpath_lines(result)[0] and "x86_64" in offpath_lines(result)[0]


def test_another_key(build, folder, some_key):  # noqa: F811
    with standing_device("keyed", "x86_64", folder) as record:
        result = succeeded(run(build("parallel"), env=seen_by(record) | some_key | HOST))
        assert len(offpath_lines(result)) == 1 and "key" in offpath_lines(result)[0]
        assert run(build("parallel"), env=seen_by(record)).returncode == 0


def silent(client: socket.socket, _service: socket.socket) -> None:
    client.recv(1)
    client.recv(1 << 16)  # what is left of its challenge; then it waits in vain


def cut_after_the_proofs(client: socket.socket, service: socket.socket) -> None:
    """As a service does whose machine was too slow: both have shown that they know the key, and nothing follows."""
    service.sendall(client.recv(GREETING_BYTES, socket.MSG_WAITALL))
    client.sendall(service.recv(CHALLENGE_BYTES, socket.MSG_WAITALL))
    client.recv(PROOF_BYTES, socket.MSG_WAITALL)


@pytest.mark.parametrize("way, word", [(silent, "no answer"), (cut_after_the_proofs, "has closed it")])
def test_a_device_that_runs_out_of_time_has_no_other_key(way, word, build, tmp_path):  # noqa: F811
    with standing_device("late", "x86_64", tmp_path) as record, socket.create_server(("127.0.0.1", 0)) as between:
        between.settimeout(LIMIT_S)
        ended = threading.Event()

        def stand_between() -> None:
            host, port = record.entry.partition("=")[2].partition("/")[0].rsplit(":", 1)
            with between.accept()[0] as client, socket.create_connection((host, int(port))) as service:
                way(client, service)
                if way is silent:
                    ended.wait(LIMIT_S)

        thread = threading.Thread(target=stand_between)
        thread.start()
        env = seen_by(record) | HOST | {"OFFPATH_DEVICE_TIMEOUT_MS": "500" if way is silent else "10000"}
        env["OFFPATH_DEVICES"] = f"late=127.0.0.1:{between.getsockname()[1]}/x86_64"
        result = run(build("parallel"), env=env)
        ended.set()
        thread.join()
    assert result.returncode == 0, (result.stdout, result.stderr)
    (line,) = offpath_lines(result)
    assert word in line and "key" not in line


def test_nothing_is_left_behind(build, folder):  # noqa: F811
    """When the program and its device are gone, so is the service that was started for them."""
    runtime = Path(os.environ["OFFPATH_RUNTIME_DIR"])
    assert run(build("crash"), "none", env=seen_by(local=1)).returncode == 0
    eventually(lambda: not any(runtime.glob("*.sock*")))
    assert [path.name for path in runtime.iterdir() if path.name != "devices"] == []
