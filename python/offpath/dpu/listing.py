# SPDX-License-Identifier: BSD-3-Clause
"""What `offpath devices` lists: the devices that programs see, and standing ones that they are not told of."""

import json
import os
import subprocess

from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.dpu import service

ANSWER_LIMIT_S = 60


def collect() -> list[dict]:
    """Devices in the order of their numbers, as the plugin finds them; then those that run here and are not listed.

    The plugin's own code looks at them, so this is what a program gets. Raises UserError for a list that is wrong.
    """
    standing = {record.address: record for record in service.running()}
    rows = _seen_by_programs()
    for row in rows:
        standing.pop(row["address"], None)
    return rows + [_unlisted(record) for record in standing.values()]


def _seen_by_programs() -> list[dict]:
    program = paths().tool("offpath-devices")
    key_known = service.KEY_VARIABLE in os.environ
    env = os.environ if key_known else os.environ | {service.KEY_VARIABLE: str(service.default_key_file())}
    result = subprocess.run([program], capture_output=True, text=True, env=env, timeout=ANSWER_LIMIT_S)
    if result.returncode != 0:
        said = result.stderr.strip().splitlines()
        raise UserError(said[-1].removeprefix("offpath: ") if said else f"{program} failed without a word.", 1)
    return json.loads(result.stdout)


def _unlisted(record: service.Record) -> dict:
    return {
        "number": None,
        "name": record.name,
        "kind": "emulated" if record.emulated else "remote",
        "architecture": record.arch,
        "cores": None,
        "memory_bytes": None,
        "address": record.address,
        "state": "not listed",
        "limits": {},
        "entry": record.entry,
    }
