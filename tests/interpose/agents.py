# SPDX-License-Identifier: BSD-3-Clause
"""Cases of a service on another machine, as far as one can be one: behind an agent, with process ids of its own."""

import contextlib
import os
import pathlib
import shutil

import losses
import onesided
import restarts
from pointtopoint import wait_until
from restarts import observation
from setting import FORCED, check, same

API = pathlib.Path(__file__).resolve().parent.parent / "api"
DPU = API / "dpu.sh"
ARM = API / "aarch64.sh"


def services_there(s):
    """The services on DPUs of this test."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_text().split("\0")
            if any(f"{s.folder}/" in word and "-dpu-" in word for word in words):
                found.append(int(path.parent.name))
    return found


@contextlib.contextmanager
def two_dpus(s, offpathd=None):
    """OFFPATH_DPU of two, the second with a folder of its own; at the end nothing of its service is left."""
    other = f"{s.folder}/other"
    os.mkdir(other, 0o700)
    service = f"{DPU} {offpathd or os.path.join(s.build, 'bin', 'offpathd')}"
    yield f"exec:{service},exec:OFFPATH_RUNTIME_DIR={other} {service}"
    wait_until(lambda: os.listdir(other) == [], "the service ends with its last agent")
    os.rmdir(other)


def agents(s, offpathd=None):
    """Collectives and messages between ranks that are dealt out to two DPUs do what they do natively."""
    with two_dpus(s, offpathd) as dpus:
        for program, policy in (("exchange", "*:dpu"), ("messages", "*:host,send:2K-inf:dpu")):
            changes = {**FORCED, "OFFPATH_POLICY": policy, "OFFPATH_STATS_FILE": s.stats, "OFFPATH_DPU": dpus}
            offloaded = s.offloaded(program, ranks=3, **changes)
            same(s.native(program, ranks=3), offloaded)
            check(not offloaded.warnings(), str(offloaded))
            found = s.statistics()
            counts = [(line["messages"] if program == "messages" else line)["offloaded_count"] for line in found]
            check(all(count > 0 for count in counts), f"nothing went: {found}")


def agents_aarch64(s):
    """The same with services for Arm on an emulated processor."""
    offpathd = API.parent.parent / "build" / "aarch64" / "bin" / "offpathd"
    if offpathd.exists() and shutil.which("qemu-aarch64"):
        agents(s, ARM)
    else:
        print("skipped: there is no aarch64 build. Run: make aarch64")


def agents_windows(s):
    """One-sided operations, too: every window is offloaded, and random operations do what a model says."""
    with two_dpus(s) as dpus:
        other, found = onesided.run(s, "rma", OFFPATH_DPU=dpus)
        check("several windows: ok" in other.out, str(other))
        check(all(one["offloaded_count"] == onesided.FLAVORS + 2 for one in found), str(found))
        other, found = onesided.run(s, "rma_ways", ranks=3, OFFPATH_MPI_WINDOWS="dpu", OFFPATH_DPU=dpus)
        check(other.out.count(": ok") == 12, str(other))
        check(all(one["natively_count"] == 0 for one in found), str(found))


def agents_lost(s):
    """A job whose agent, or service on a DPU, is killed goes on there with other ones."""
    dpu = f"exec:{DPU} {os.path.join(s.build, 'bin', 'offpathd')}"
    victims = [lambda agents: agents, lambda _: services_there(s)]
    warnings, lines = losses.killed_again(s, 2, lambda kill, found: victims[kill](found), OFFPATH_DPU=dpu)
    check(len(warnings) == 2, str(warnings))
    mostly_offloaded(lines)


def agents_next(s):
    """Of two DPUs one is lost: its ranks go on at the other one."""
    with two_dpus(s) as dpus:
        warnings, lines = losses.killed_again(s, 1, lambda *_: services_there(s)[:1], appears=False, OFFPATH_DPU=dpus)
    check(len(warnings) <= 1, str(warnings))
    mostly_offloaded(lines)


def agents_restarted(s):
    """Both are replaced while a job runs, first the service on the DPU: nothing is lost, and the old ones end."""
    dpu = f"exec:{DPU} {os.path.join(s.build, 'bin', 'offpathd')}"

    def act(part):
        agent, there = s.service_pids(), set(services_there(s))
        for path in sorted(pathlib.Path(s.folder).glob("*.sock"), key=lambda path: "-dpu-" not in path.name):
            observation.replace(path)
        check(set(services_there(s)) - there and set(s.service_pids()) - set(agent), "others are there")
        if part == 1:
            pathlib.Path(f"{s.folder}/go-{part}").touch()
            wait_until(lambda: not set(services_there(s)) & there, f"{there} have ended")

    other, lines = restarts.restarted_while(s, act, 2, OFFPATH_DPU=dpu)
    check(not other.err, str(other))
    for line in lines:
        check("loss" not in line and line["collectives"]["ialltoall"]["native_count"] == 0, str(line))


def mostly_offloaded(lines):
    for line in lines:
        for counts in (line["collectives"]["ialltoall"], line["messages"], line["windows"]):
            check(counts["offloaded_count"] > 2 * counts["native_count"], str(line))


CASES = (agents, agents_aarch64, agents_windows, agents_lost, agents_next,
         agents_restarted)
