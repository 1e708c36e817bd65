# SPDX-License-Identifier: BSD-3-Clause
"""What `offpath selftest` says of the nodes: rows made of what each rank found on its own (places/node_facts.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from offpath.base.sizes import rough_size_text
from offpath.places.allocation import KIND

OK, LOSS, NO = "ok", "loss", "no"  # it holds; Offpath works, but with a loss; it does not work
MOST_NAMES = 4
FAST_CLOCKS = ("tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page")  # read without a system call
SHM_BYTES = 64 << 20  # for a rank: what MPI libraries want there for messages inside a node
OPEN_FILES = 4096
LOCKED_BYTES = 1 << 30
CLOCKS_APART_S = 60.0


@dataclass(frozen=True)
class Row:
    what: str
    verdict: str
    found: str
    do: str = ""  # where the verdict is not OK, unless it stands in what was found


def rows(facts: Sequence[dict]) -> list[Row]:
    each = (_nodes, _parts, _quota, _memory, _shared, _runtime, _open_files, _locked, _clocks)
    return [row for find in each if (row := find(facts)) is not None]


def _names(facts: Iterable[dict]) -> str:
    names = sorted({each["node"] for each in facts})
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _by_value(facts: Sequence[dict], value: Callable[[dict], str]) -> str:
    """Which nodes have which; without their names where all have the same."""
    values = sorted({value(each) for each in facts})
    if len(values) == 1:
        return values[0]
    return "; ".join(f"{_names(each for each in facts if value(each) == one)}: {one}" for one in values)


def _nodes(facts: Sequence[dict]) -> Row:
    ranks = Counter(each["node"] for each in facts)
    found = f"{len(ranks)} ({_names(facts)}), {len(facts)} ranks"
    if len({tuple(each[field] for field in KIND) for each in facts}) > 1:
        kinds = _by_value(facts, lambda each: f"{each['arch']}, {each['processor']}, {each['cores']} cores")
        do = "What is measured on them holds for none; for offpath tune ask for nodes of one kind."
        return Row("nodes", LOSS, f"{found}, of several kinds: {kinds}", do)
    return Row("nodes", OK, found + ("; no network was tried" if len(ranks) == 1 else ""))


def _parts(facts: Sequence[dict]) -> Row:
    missing = [each for each in facts if each["missing"]]
    do = "Install one release on all nodes under the same path."
    if missing:
        return Row("parts", NO, f"{missing[0]['missing'][0]} is not on {_names(missing)}", do)
    versions = _by_value(facts, lambda each: f"Offpath {each['version']}")
    if ":" in versions:
        return Row("parts", NO, versions, do)
    if len({each["content"] for each in facts}) > 1:
        builds = _by_value(facts, lambda each: each["content"])
        return Row("parts", NO, f"{versions}, but of other builds: {builds}", do)
    return Row("parts", OK, f"{versions}, alike on all nodes")


def _quota(facts: Sequence[dict]) -> Row | None:
    ranks = Counter(each["node"] for each in facts)
    short = [each for each in facts if each["quota"] is not None and each["quota"] < ranks[each["node"]] + 1]
    if not short:
        return None
    time = _by_value(short, lambda each: f"{each['quota']:.4g} for {ranks[each['node']]} ranks and the service")
    do = "Raise its cpu.max; else the service takes time from the ranks."
    return Row("processor time", LOSS, f"the control group grants cores: {time}", do)


def _memory(facts: Sequence[dict]) -> Row:
    refused = [each for each in facts if each["not_read"]]
    scope = _by_value(facts, lambda each: f"ptrace_scope {each['ptrace_scope'] or 'not there'}")
    if not refused:
        return Row("memory of ranks", OK, f"another process of the user reads it ({scope})")
    found = f"no process may read another one's on {_names(refused)} ({refused[0]['not_read']}; {scope})"
    do = "Set kernel.yama.ptrace_scope to 0 or 1; allow process_vm_readv in containers (CAP_SYS_PTRACE)."
    return Row("memory of ranks", NO, found, do)


def _shared(facts: Sequence[dict]) -> Row:
    refused = [each for each in facts if each["not_shared"]]
    if refused:
        found = f"no memfd on {_names(refused)} ({refused[0]['not_shared']})"
        do = "Sessions are made of it: raise the limit of memory, or take a newer kernel."
        return Row("shared memory", NO, found, do)
    ranks = Counter(each["node"] for each in facts)
    full = [each for each in facts if (each["shm_bytes"] or 0) < SHM_BYTES * ranks[each["node"]]]
    free = _by_value(facts, lambda each: f"{rough_size_text(each['shm_bytes'] or 0)} free in /dev/shm")
    do = f"Offpath needs nothing there, but MPI libraries may: make room in /dev/shm on {_names(full)}."
    return Row("shared memory", LOSS if full else OK, f"sessions: yes; {free}", do if full else "")


def _runtime(facts: Sequence[dict]) -> Row:
    wrong = [each for each in facts if each["runtime"]]
    if not wrong:
        return Row("runtime folder", OK, "takes sockets")
    do = "Name a folder of your own in OFFPATH_RUNTIME_DIR, with mode 0700, on a disk of the node."
    return Row("runtime folder", NO, _by_value(wrong, lambda each: f"{each['node']}: {each['runtime']}"), do)


def _open_files(facts: Sequence[dict]) -> Row:
    few = [each for each in facts if each["open_files"] is not None and each["open_files"] < OPEN_FILES]
    most = _by_value(facts, lambda each: "no limit" if each["open_files"] is None else f"up to {each['open_files']}")
    do = f"Raise the hard limit on {_names(few)}: each rank and each connection needs some."
    return Row("open files", LOSS if few else OK, most, do if few else "")


def _locked(facts: Sequence[dict]) -> Row | None:
    """Only cards need it."""
    with_cards = [each for each in facts if each["rdma"]]
    few = [each for each in with_cards if each["locked_bytes"] is not None and each["locked_bytes"] < LOCKED_BYTES]
    if few:
        limits = _by_value(few, lambda each: rough_size_text(each["locked_bytes"]))
        do = f"Set the limit memlock to unlimited on {_names(few)}, for daemons that start ranks, too."
        return Row("locked memory", LOSS, f"{limits} (RDMA may not use more, so data is copied)", do)
    return Row("locked memory", OK, "enough for RDMA") if with_cards else None


def _clocks(facts: Sequence[dict]) -> Row:
    slow = [each for each in facts if each["clock"] and each["clock"] not in FAST_CLOCKS]
    apart_s = max(each["time_s"] for each in facts) - min(each["time_s"] for each in facts)
    names = _by_value(facts, lambda each: each["clock"] or "unknown")
    if slow:
        do = f"Reading it is slow on {_names(slow)}; see why the kernel does not take tsc."
        return Row("clocks", LOSS, names, do)
    if apart_s > CLOCKS_APART_S:
        do = "Run a time daemon: MUNGE refuses what is minutes old. Traces need no common clock."
        return Row("clocks", LOSS, f"{names}; nodes are {apart_s:.0f} s apart", do)
    return Row("clocks", OK, names)
