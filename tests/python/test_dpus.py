# SPDX-License-Identifier: BSD-3-Clause
"""The list of DPUs, `offpath dpus` and `offpath run --dpus`: what they say, and what they refuse."""

import contextlib
import json
import os
import platform
import socket
import subprocess
import sys

import pytest
from conftest import LIMIT_S, assert_one_line_error, offpath, require
from offpath import __version__
from offpath.base.errors import UserError
from offpath.base.files import new_secret
from offpath.base.paths import paths
from offpath.dpu import checking, dpufile, service

TEXT = """
# host  DPU
node1   10.0.0.2      port=7002 workers=2 executors=3 cores=0,2-3 functions=/opt/lib share   # the first
node1   10.0.0.3:7003 arch=x86_64
node2   node2-dpu     ssh workers=4 cores=0-3 functions=/opt/lib
node2   other-dpu     ssh share cores=0,2-3
*       fe80::1
"""


def test_a_file_becomes_what_every_rank_is_told():
    dpus = dpufile.parse_file(TEXT, "dpus.txt")
    assert [dpu.where for dpu in dpus] == ["dpus.txt:3", "dpus.txt:4", "dpus.txt:5", "dpus.txt:6", "dpus.txt:7"]
    assert dpufile.variable(dpus) == (
        "node1=10.0.0.2:7002/workers=2/executors=3/cores=0+2-3/functions=%2Fopt%2Flib/share,10.0.0.3:7003/arch=x86_64;"
        "node2=exec:ssh -o BatchMode=yes node2-dpu env OFFPATH_SERVICE_WORKERS=4 OFFPATH_TASK_FOLDERS=/opt/lib "
        "offpathd --for-agents --cores 0-3,"
        "exec:ssh -o BatchMode=yes other-dpu offpathd --for-agents --cores '0,2-3' --share;"
        "*=[fe80::1]:7001"
    )


def test_a_list_with_commas_is_the_same_for_every_host_or_names_them():
    assert dpufile.variable(dpufile.read("10.0.0.2:7002,10.0.0.3:7001")) == "*=10.0.0.2:7002,10.0.0.3:7001"
    assert dpufile.variable(dpufile.read("a=spare,b=spare:1")) == "a=spare:7001;b=spare:1"


@pytest.mark.parametrize(
    "line, words",
    [
        ("node1", ["'node1' has no DPU", "HOST DPU"]),
        ("node1 dpu1 7002", ["'7002' is not understood", "port=N"]),
        ("node1 dpu1 port", ["'port' is not understood"]),
        ("node1 dpu1 ssh=yes", ["'ssh=yes' is not understood"]),
        ("node1 dpu1 share=yes", ["'share=yes' is not understood"]),
        ("node1 dpu1 port=0", ["'0' is not a port"]),
        ("node1 dpu1 port=65536", ["'65536' is not a port"]),
        ("node1 dpu1:x", ["'x' is not a port"]),
        ("node1 dpu1 ssh port=1", ["both given"]),
        ("node1 dpu1 workers=none", ["'none' is not a number of workers"]),
        ("node1 dpu1 workers=65", ["1 to 64"]),
        ("node1 dpu1 workers=1 workers=2", ["workers is given twice"]),
        ("node1 dpu1 executors=0", ["1 to 64"]),
        ("node1 dpu1 functions=lib", ["'lib' is not a folder"]),
        ("node1 dpu1 functions=/a;b", ["'/a;b' is not a folder"]),
        ("node1 dpu1 cores=all", ["'all' is not a list of cores"]),
        ("node1 dpu1 arch=vax", ["'vax' is not an architecture"]),
        ("node;1 dpu1", ["'node;1' is not a host name"]),
        ("node1 dpu,1", ["'dpu,1' is not a DPU"]),
        ("first dpu", ["first has dpu:7001 in dpus.txt:1, too"]),
    ],
)
def test_a_wrong_line_is_named(line, words):
    with pytest.raises(UserError) as error:
        dpufile.parse_file(f"first dpu\n{line}\n", "dpus.txt")
    assert str(error.value).startswith("dpus.txt:2: ")
    for word in words:
        assert word in str(error.value)


def test_what_is_no_list_at_all(tmp_path):
    (tmp_path / "empty").write_text("# nothing\n")
    for given, words in (
        ("no-such-file", ["no-such-file is not a file"]),
        (str(tmp_path / "empty"), ["lists no DPU"]),
        ("a=b:1,a=b:1", ["--dpus: a has b:1 twice"]),
    ):
        assert_one_line_error(offpath("dpus", "list", given), *words)
    (tmp_path / "dpus").write_text("localhost 127.0.0.1\nno-such-host.invalid 127.0.0.1\n")
    for command in (["dpus", "check"], ["run", "--dpus"]):
        result = offpath(*command, str(tmp_path / "dpus"), *(["--", "true"] if command[0] == "run" else []))
        assert_one_line_error(result, f"{tmp_path}/dpus:2: the host no-such-host.invalid is not known")


@contextlib.contextmanager
def starter(folder, *options):
    """offpathd for agents on a port of this machine; and the variables that its hosts need."""
    key = folder / "key"
    if not key.exists():
        new_secret(key)
    address = service.with_free_port("127.0.0.1")
    log = folder / "log"
    with open(log, "wb") as output:
        words = [str(paths().service), "--listen", address, "--key-file", str(key), *options]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        service.await_listening(process, address, log)
        yield address, {"OFFPATH_DEVICE_KEY_FILE": str(key)}
    finally:
        process.terminate()
        process.wait(LIMIT_S)


@pytest.mark.machine
def test_check_says_what_is_there_and_what_is_missing(tmp_path):
    require(paths().service)
    other = tmp_path / "other"
    new_secret(other)
    greeter = "import socket\ns = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)\n"
    greeter += "while True:\n c, _ = s.accept(); c.sendall(b'SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3, a banner' * 3)\n"
    stranger = subprocess.Popen([sys.executable, "-c", greeter], stdout=subprocess.PIPE, text=True)
    foreign = f"127.0.0.1:{stranger.stdout.readline().strip()}"
    closed = service.with_free_port("127.0.0.1")
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text("#!/bin/sh\necho 'offpathd: error while loading shared libraries: libhwloc.so.15' >&2; exit 127\n")
    ssh.chmod(0o755)
    try:
        with starter(tmp_path) as (address, env):
            host = socket.gethostname()
            list_file = tmp_path / "dpus"
            list_file.write_text(f"{host} {address}\nlocalhost {closed}\nlocalhost {foreign}\nlocalhost arm1 ssh\n")
            env = env | {"PATH": f"{ssh.parent}:{os.environ['PATH']}"}
            result = offpath("dpus", "check", str(list_file), env=env)
            assert result.returncode == 1 and result.stderr == ""
            up, shut, wrong, no_library = result.stdout.splitlines()
            assert f"{host}: {address}: up, Offpath {__version__}, {platform.machine()}, " in up and "bit/s" in up
            assert up.endswith(" s (each counts from its boot; times are converted)")  # never those of one machine
            assert "MISSING" in shut and "refused" in shut and "offpathd --listen" in shut
            assert "MISSING" in wrong and "no Offpath device service" in wrong
            assert "MISSING" in no_library and "libhwloc.so.15" in no_library and "Try by hand: ssh" in no_library
            own = offpath("dpus", "check", str(list_file), "--here", "--json", env=env)
            (row,) = json.loads(own.stdout)
            assert own.returncode == 0 and row["state"] == "up" and row["latency_ns"] > 0
            assert abs(row["clock_offset_ns"]) < 10**9 and row["to_bits_per_s"] > 0  # one machine, one clock
            stolen = offpath("dpus", "check", address, env={"OFFPATH_DEVICE_KEY_FILE": str(other)})
            assert stolen.returncode == 1 and "does not know the key" in stolen.stdout
            keyless = offpath("dpus", "check", address, env={"XDG_CONFIG_HOME": str(tmp_path / "nowhere")})
            assert keyless.returncode == 1 and "OFFPATH_DEVICE_KEY_FILE" in keyless.stdout
            # Started only if all are there
            shown = ["--", "sh", "-c", "echo $OFFPATH_DPUS"]
            needs = ["run", "--quiet", "--dpus-required", "--dpus"]
            assert offpath(*needs, address, *shown, env=env).stdout == f"*={address}\n"
            assert_one_line_error(
                offpath(*needs, str(list_file), *shown, env=env), f"{list_file}:2: DPU {closed}", status=1
            )
    finally:
        stranger.kill()
        stranger.communicate()


def test_a_dpu_that_does_not_fit_is_missing():
    dpu = dpufile.Dpu("host", "dpu", arch="aarch64")
    fits = {"version": __version__, "machine": "aarch64", "jobs": 1, "most_jobs": 2, "cores": 4, "allowed_cores": "0-3"}
    assert checking._mismatch(dpu, fits) is None
    for change, word in (
        ({"version": "0.0"}, "Offpath 0.0 is installed there"),
        ({"machine": "x86_64"}, "it is x86_64"),
        ({"jobs": 2}, "it is full"),
    ):
        assert word in checking._mismatch(dpu, fits | change)


def test_a_job_is_told_or_not(tmp_path):
    require(paths().preload_library)
    show = ["--", "sh", "-c", 'echo "$OFFPATH_DPUS|$OFFPATH_DPU"']
    inherited = {"OFFPATH_DPUS": "*=old:1", "OFFPATH_DPU": "older:1"}
    for options, expected in (
        (["--dpus", "localhost=127.0.0.1:7002"], "localhost=127.0.0.1:7002|"),
        (["--dpus", "none"], "|"),
        ([], "*=old:1|older:1"),
    ):
        assert offpath("run", "--quiet", *options, *show, env=inherited).stdout == expected + "\n"
    assert_one_line_error(offpath("run", "--dpus-required", *show), "--dpus-required", "Give --dpus")


def test_list_shows_what_the_file_says(tmp_path):
    (tmp_path / "dpus").write_text("localhost 127.0.0.1 workers=2 cores=1\n* 127.0.0.1 port=7005\n")
    shown = offpath("dpus", "list", str(tmp_path / "dpus"))
    assert shown.stdout == "localhost: 127.0.0.1:7001 workers=2 cores=1\n*: 127.0.0.1:7005\n"
    (row,) = json.loads(offpath("dpus", "list", str(tmp_path / "dpus"), "--here", "--json").stdout)
    assert row["entry"] == "127.0.0.1:7005"
