# SPDX-License-Identifier: BSD-3-Clause
"""Machine files: what `offpath calibrate` measured, or the user wrote; checked before anything uses them."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path

from offpath.base import console, files
from offpath.base.errors import UserError
from offpath.base.sizes import parse_rate
from offpath.launch import cluster_files

FORMAT, VERSION = "offpath-machine", 1
# Sections and fields; what is not measured starts from here. ns, bytes, bytes per ns (GB/s).
DEFAULTS = {
    "network": {
        "rate_bytes_per_ns": 0.125,
        "peak_bytes_per_ns": 2.0,
        "burst_bytes": 0,
        "latency_ns": 15000,
        "wire_efficiency": 0.992,  # TCP at an MTU of 9000
        "header_bytes": 80,
    },
    "memory": {"copy_bytes_per_ns": 10, "cma_bytes_per_ns": 5, "reduce_bytes_per_ns": 4},
    "native": {
        "family": "openmpi",
        "eager_bytes": 65536,
        "chunk_bytes": 131072,
        "window_bytes": 262144,
        "post_ns": 3000,
        "message_ns": 2000,
        "send_ns_per_byte": 0.15,
        "receive_ns_per_byte": 0.2,
        "crossing_efficiency": 1.0,
    },
    "service": {
        "own_cores": False,
        "speed": 1.0,
        "chunk_bytes": 57344,
        "window_bytes": 917504,
        "post_ns": 1000,
        "operation_ns": 4000,
        "step_ns": 300,
        "message_ns": 2000,
        "send_ns_per_byte": 0.3,
        "receive_ns_per_byte": 0.45,
        "wake_ns": 15000,
        "host_wake_ns": 10000,
        "crossing_efficiency": 1.0,
    },
}
# What no prediction of messages needs, and older files lack.
CORES = {"compute_flop_per_ns": 2.0, "shared_copy_bytes_per_ns": None}
CODECS = ("encode_ns_per_byte", "decode_ns_per_byte")  # of a codec that was measured
NOT_NUMBERS = {("native", "family"), ("service", "own_cores")}


def default() -> dict:
    """A machine that nobody measured: the lab's on a plain server."""
    return {"format": FORMAT, "version": VERSION, **copy.deepcopy(DEFAULTS)}


def value(machine: dict, section: str, field: str) -> float:
    found = machine[section][field]
    return found["median"] if isinstance(found, dict) else found


@dataclass(frozen=True)
class Rates:
    """What formulas need of a machine, in seconds. Bytes of memory are those read and those written."""

    core_flop_per_s: float
    core_memory_bytes_per_s: float
    two_cores_memory_bytes_per_s: float
    link_bytes_per_s: float
    service_speed: float  # of its cores; 1: as the host's
    handover_s: float  # from the host to a service that sleeps


def rates(machine: dict) -> Rates:
    cores = {"cores": CORES | machine.get("cores", {})}
    copy_rate = value(machine, "memory", "copy_bytes_per_ns")
    return Rates(
        core_flop_per_s=1e9 * value(cores, "cores", "compute_flop_per_ns"),
        core_memory_bytes_per_s=2e9 * copy_rate,
        two_cores_memory_bytes_per_s=4e9 * (value(cores, "cores", "shared_copy_bytes_per_ns") or copy_rate),
        link_bytes_per_s=1e9 * value(machine, "network", "rate_bytes_per_ns"),
        service_speed=value(machine, "service", "speed"),
        handover_s=1e-9 * (value(machine, "service", "post_ns") + value(machine, "service", "wake_ns")),
    )


def load(file: Path) -> dict:
    """Raises UserError with one line for what is missing, foreign or absurd."""
    def take(found: object) -> dict:
        machine = files.of_format(found, FORMAT, VERSION)
        _check(machine, str(file))
        return machine

    return files.read_json(file, "machine file", f"Run: offpath calibrate -o {file}", take)


def chosen(given: Path | None, mpi: str | None = None) -> Path | None:
    """The machine file to plan with: the one given, else OFFPATH_MACHINE or this cluster's, which is said."""
    if given is not None:
        return given
    file = cluster_files.machine_file(mpi)
    if file is not None:
        console.note(f"the machine is that of {file}.")
    return file


def _check(machine: dict, name: str) -> None:
    """Presence and sign; the model itself knows the ranges (src/model/machine.cpp)."""
    for section, fields in DEFAULTS.items():
        for field in fields:
            found = machine.get(section, {}).get(field) if isinstance(machine.get(section), dict) else None
            if found is None:
                raise UserError(f"{name}: {section}.{field} is missing (the model needs it). Run: offpath calibrate")
            if (section, field) not in NOT_NUMBERS:
                _check_number(found, f"{name}: {section}.{field}")
    for field, found in _section(machine, "cores", name).items():
        if field in CORES:
            _check_number(found, f"{name}: cores.{field}")
    codecs = _section(machine, "codecs", name)
    for codec in codecs:
        for field in CODECS:
            _check_number(_section(codecs, codec, f"{name}: codecs").get(field), f"{name}: codecs.{codec}.{field}")


def _section(around: dict, section: str, name: str) -> dict:
    """It may be missing."""
    found = around.get(section, {})
    if not isinstance(found, dict):
        raise UserError(f"{name}: {section} is {found!r} (it should be a section). Run: offpath calibrate")
    return found


def _check_number(found: object, where: str) -> None:
    number = found.get("median") if isinstance(found, dict) else found
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 <= number < 1e15:
        raise UserError(f"{where} is {number!r} (it should be a number from 0 on). Correct it.")


def changed(
    machine: dict, *, dpu_cores: int | None = None, dpu_speed: float | None = None, link: str | None = None
) -> dict:
    """The machine with other hardware: what `offpath plan --dpu-cores --dpu-speed --link` ask."""
    result = copy.deepcopy(machine)
    if dpu_cores is not None:
        result["service"]["own_cores"] = dpu_cores > 0
    speed = (dpu_speed or value(machine, "service", "speed")) * max(1, dpu_cores or 1)
    result["service"]["speed"] = speed
    if link is not None:
        result["network"]["rate_bytes_per_ns"] = parse_rate(link) / 8e9
    return result
