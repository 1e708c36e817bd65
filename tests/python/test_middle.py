# SPDX-License-Identifier: BSD-3-Clause
"""Somebody in the middle of each kind of connection that crosses a network: who changes a byte behind the handshake,
repeats a frame, leaves one out, swaps two, puts one of another connection into its place, or plays both ends. The
connection ends with a line; no memory is changed, nothing is run. Services among each other and devices: middle_test,
wire_test and device_service_test."""

import ctypes
import ctypes.util
import json
import os
import re
import secrets
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from api_support import environment, finish, require_executors, start  # noqa: F401
from conftest import PROGRAMS, ROOT, eventually
from loss_support import services_in
from offpath import OffpathError, TcpStore
from offpath.base.paths import paths
from relay_support import (
    BACK,
    FABRIC,
    FORTH,
    HIDDEN_LINE,
    STORE,
    Plan,
    Relay,
    flip,
    leave_out,
    repeat,
    replaced_by,
    swap,
)  # fmt: skip
from test_api_rendezvous import free_port
from test_dpus import starter


class Store:
    """TcpStore of rank 0, and a rank that says two things before it listens."""

    wire = STORE
    frames = [(FORTH, 1), (BACK, 3)]
    words = re.compile("changed (it )?on the way|on the way has changed")
    words_of_nobody = "does not know the job's secret"

    def __init__(self, folder, environ):
        self.secret, self.port = b"0123456789abcdef", free_port()
        self.server = TcpStore("127.0.0.1", self.port, serves=True, secret=self.secret)

    def close(self):
        self.server.close()

    def use(self, relay):
        """Over the relay. What was said of it; nothing: all went well."""
        relay.far = ("127.0.0.1", self.port)
        try:
            client = TcpStore("127.0.0.1", relay.port, serves=False, secret=self.secret, timeout=0.1)
        except OffpathError as error:
            return str(error)
        line = client._line

        def ask_all(words):
            line._socket.sendall(b"".join(map(line._conversation.say, words)))
            answers = []
            while len(answers) < len(words):
                answers += line._more()
            return answers

        line.ask = ask_all
        try:
            client._ask([b"S\0\0\0\5key %dvalue %d" % (i, i) for i in range(2)])
            found = client._ask([b"Gkey %d" % i for i in range(2)])
            assert found == [b"1value 0", b"1value 1"], "a changed value was believed"
        except OffpathError as error:
            return str(error)
        finally:
            client.close()
        return ""

    def check(self):
        values = {f"key {i}": b"value %d" % i for i in range(2)}
        assert self.server._values.items() <= values.items(), "a changed value is kept"


class Agent:
    """A host's agent and the service on its DPU, which runs tasks. The relay is where the service's address says."""

    wire = FABRIC
    frames = [(FORTH, 1), (FORTH, 5), (BACK, 4)]  # the first: a program attaches
    words = re.compile("lost service|service .* was lost|the service on the DPU is lost")
    words_of_nobody = "the service on the DPU is lost"

    def __init__(self, folder, environ):
        self.dpu, self.file, self.line = folder / "dpu", folder / "notes", folder / "line"
        self.dpu.mkdir(mode=0o700)
        self.environ = environ | {"OFFPATH_SERVICE_SILENCE_MS": "2000", "PYTHONPATH": f"{ROOT}/python:{PROGRAMS}"}

    def close(self):
        end_all(self.dpu)

    def use(self, relay):
        token = self.token = secrets.token_bytes(32)
        words = [str(paths().service), "--for-agents", "--share"]
        environ = self.environ | {"OFFPATH_RUNTIME_DIR": str(self.dpu)}
        there = subprocess.run(words, env=environ, input=token, capture_output=True, check=True)
        said = json.loads(there.stdout)
        address = Address(bytes.fromhex(said["address"]))
        relay.far = address.place
        self.line.write_text(there.stdout.decode().replace(said["address"], address.at(relay.port).hex()))
        return run_task(self.environ | {"OFFPATH_DPU": f"exec:cat {self.line}"}, token, self.file)

    def check(self):
        ran = self.file.read_text() if self.file.exists() else ""
        once = f"12000 {sum(float(i) for i in range(5000, 10000))}\n"
        assert ran in ("", once), "a task ran twice, or on something else"


class Starter:
    """An agent that asks a DPU's starter for its job's service."""

    wire = HIDDEN_LINE
    frames = [(FORTH, 0), (BACK, 0)]
    words = re.compile("on the way has changed|channel has closed it")
    words_of_nobody = "does not know the key"

    def __init__(self, folder, environ):
        self.folder, self.file = folder, folder / "notes"
        (folder / "dpu").mkdir(mode=0o700)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OFFPATH_RUNTIME_DIR", str(folder / "dpu"))
            self.running = starter(folder, "--share")
            address, more = self.running.__enter__()
        self.host, port = address.split(":")
        self.port = int(port)
        self.environ = environ | more | {"PYTHONPATH": f"{ROOT}/python:{PROGRAMS}"}

    def close(self):
        end_all(self.folder / "dpu")
        self.running.__exit__(None, None, None)

    def use(self, relay):
        relay.far = (self.host, self.port)
        self.token = secrets.token_bytes(32)
        return run_task(self.environ | {"OFFPATH_DPU": f"127.0.0.1:{relay.port}"}, self.token, self.file)

    def check(self):
        assert not self.file.exists(), "a task ran"


def run_task(environ, token, notes):
    """A program with memory on a DPU, and a task that writes its notes. What it said of what became of that."""
    notes.unlink(missing_ok=True)
    program = start(environ, "far_memory.py", token.hex(), str(notes))
    said, errors = finish(program)
    assert program.returncode == 0, errors
    return said.strip()


def end_all(folder):
    """Services wait half a minute for agents that do not come."""
    for process in services_in(folder):
        os.kill(process, signal.SIGKILL)


class Address:
    """Of a service on the fabric, whose first place is another (fabric/tcp/address.hpp)."""

    def __init__(self, text):
        self.id, places = text[8:24], text[24:]
        while places[0] != 4:
            places = places[20:]
        self.place = (socket.inet_ntoa(places[4:8]), int.from_bytes(places[2:4], "big"))

    def at(self, port):
        rest = self.id + bytes([4, 8]) + port.to_bytes(2, "big") + socket.inet_aton("127.0.0.1")
        sum_of, sodium = ctypes.create_string_buffer(8), ctypes.CDLL(ctypes.util.find_library("sodium"))
        sodium.crypto_shorthash(sum_of, rest, ctypes.c_ulonglong(len(rest)), bytes(16))
        return sum_of.raw + rest


LINKS = {"store": Store, "agent": Agent, "starter": Starter}
DEEDS = {
    "first byte": flip(0),
    "a byte amid": flip(0.5),
    "last byte": flip(1),
    "repeated": repeat,
    "left out": leave_out,
    "swapped": swap,
    "recorded": None,  # what another connection had there
}
# A starter hears one frame and says one; what comes behind it nobody reads.
ALL_BUT = {"starter": ("left out", "swapped", "repeated")}
CASES = [
    (name, deed, *frame)
    for name, link in LINKS.items() for frame in link.frames for deed in DEEDS if deed not in ALL_BUT.get(name, ())
]  # fmt: skip


@pytest.fixture(scope="module")
def links(tmp_path_factory, environment):  # noqa: F811
    """Each with what was recorded of a connection that nobody has touched."""
    require_executors()
    made = {}
    for name, kind in LINKS.items():
        made[name] = link = kind(tmp_path_factory.mktemp(name), environment)
        with Relay(link.wire) as relay:
            assert link.use(relay) == ""
        link.recorded, link.recorded_token = relay.recorded, getattr(link, "token", b"")
    yield made
    for link in made.values():
        link.close()
    folder = Path(environment["OFFPATH_RUNTIME_DIR"])
    eventually(lambda: not services_in(folder))  # agents that have refused their programs


@pytest.mark.parametrize("name, deed, side, at", CASES)
def test_what_was_changed_ends_the_connection(links, name, deed, side, at):
    link = links[name]
    plan = Plan(DEEDS[deed] or replaced_by(link.recorded[side, at]), side, at)
    with Relay(link.wire, plan) as relay:
        said = link.use(relay)
        assert relay.done, "the frame never came"
    assert link.words.search(said), said or "nobody noticed"
    link.check()


@pytest.mark.parametrize("name", ["agent", "starter"])
def test_who_only_listens_hears_no_token(links, name):
    heard = b"".join(links[name].recorded.values())
    assert len(heard) > 400 and links[name].recorded_token not in heard


@pytest.mark.parametrize("name", LINKS)
def test_who_plays_both_ends_is_nobody(links, name):
    with Relay(links[name].wire, Plan(impostor=links[name].recorded)) as relay:
        said = links[name].use(relay)
        assert relay.done and links[name].words_of_nobody in said, said
    links[name].check()
