# SPDX-License-Identifier: BSD-3-Clause
"""A lab's record under /run: what was asked for, and which process it belongs to."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from offpath.base import files, proc
from offpath.base.errors import UserError
from offpath.base.paths import paths, source_root
from offpath.lab import inventory
from offpath.lab import plan as planning
from offpath.lab.plan import STATE_ROOT, Loss, Machines, Plan

RECORD, OWNER = "lab.json", "owner.json"


def claim(plan: Plan) -> None:
    """Takes the name: of two who try at once, one succeeds. Raises UserError when it is taken."""
    taken = UserError(
        f"A lab named {plan.name} exists already. Run `offpath lab down {plan.name}` first, or choose another --name."
    )
    if inventory.exists(plan.name):
        raise taken
    while True:
        STATE_ROOT.mkdir(mode=0o755, exist_ok=True)
        try:
            plan.state_dir.mkdir(mode=0o755)
            break
        except FileExistsError:
            raise taken from None
        except FileNotFoundError:  # the last lab has gone meanwhile, and that folder with it
            continue


def prepare(plan: Plan, owner_pid: int | None) -> None:
    """The files that the scripts `enter` and `agent` read. A lab with an owner does not outlive it for long."""
    if owner_pid:
        files.write_json(plan.state_dir / OWNER, _identity(owner_pid) or {})
    (plan.state_dir / "sys").mkdir()
    (plan.state_dir / "hosts").write_text(plan.hosts_file())
    (plan.state_dir / "shared").write_text("".join(f"{folder}\n" for folder in _shared_folders()))
    for index, node in enumerate(plan.nodes):
        cores = plan.node_cores[index]
        _prepare_files(plan.state_dir / node, range(len(cores)) if plan.rdma else cores)
    for dpu in plan.dpus if plan.machines else ():
        _prepare_files(plan.state_dir / dpu.place, dpu.cores)


def _prepare_files(folder: Path, cores: Iterable[int]) -> None:
    folder.mkdir(mode=0o700)  # its /tmp is only for those who are on the machine
    (folder / "cores").write_text(",".join(map(str, cores)) + "\n")
    (folder / "home").mkdir(mode=0o700)
    (folder / "tmp").mkdir()
    (folder / "tmp").chmod(0o1777)


def _shared_folders() -> set[str]:
    """What programs are made of: Offpath, this Python, what the search paths name. Nodes see them where they are."""
    folders = {str(paths().prefix), str(Path(__file__).parents[2]), sys.prefix, sys.base_prefix}
    root = source_root()
    folders |= {str(root)} if root else set()
    for name in ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH"):
        folders |= {entry for entry in os.environ.get(name, "").split(":") if os.path.isabs(entry)}
    return {folder for folder in folders if os.path.isdir(folder) and _is_private_on_nodes(folder)}


def _is_private_on_nodes(folder: str) -> bool:
    return any(f"{folder}/".startswith(f"{own}/") for own in ("/tmp", os.environ.get("HOME", "/tmp")))


def save(plan: Plan) -> None:
    """Written last: a lab with a record is complete."""
    files.write_json(plan.state_dir / RECORD, dataclasses.asdict(plan))


def load(name: str) -> Plan:
    """The plan of a complete lab. Raises UserError when there is none of that name, or only a part of it."""
    planning.check_name(name)
    record = _read(name, RECORD)
    if record is None:
        if inventory.exists(name):
            raise UserError(f"Lab {name} is incomplete (its `lab up` did not finish). Run: offpath lab down {name}")
        raise UserError(f"There is no lab named {name}. Run: offpath lab up --name {name}")
    try:
        record["node_cores"] = _tuples(record["node_cores"])
        if machines := record["machines"]:
            record["machines"] = Machines(**machines | {"dpu_cores": _tuples(machines["dpu_cores"])})
        if loss := record["loss"]:
            record["loss"] = Loss(**loss)
        return Plan(**record)
    except (LookupError, TypeError):
        raise UserError(f"Lab {name} is of another Offpath release. Run: offpath lab down {name}") from None


def _tuples(lists: Iterable[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(each) for each in lists)


def remove_abandoned() -> list[str]:
    """Removes labs whose owner was killed before it could do so itself."""
    removed = []
    for name in inventory.lab_names():
        owner = _read(name, OWNER)
        if owner and _identity(owner["pid"]) != owner:
            inventory.remove(name)
            removed.append(name)
    return removed


def _read(name: str, what: str) -> dict | None:
    return files.json_if_any(STATE_ROOT / name / what)


def _identity(pid: int) -> dict | None:
    began = proc.began(pid)
    return {"pid": pid, "start_ticks": int(began)} if began else None


def require_root() -> None:
    if os.geteuid() != 0:
        raise UserError("The lab needs root (it makes network namespaces). Run it with sudo, or use loopback instead.")
