# SPDX-License-Identifier: BSD-3-Clause
"""`offpath profile`: records a run without offloading."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from offpath.base import commands, console, files, handover, processes
from offpath.base.errors import UserError, write_error
from offpath.base.paths import built, paths
from offpath.launch import injection, mpis, own_rank
from offpath.trace import parts as recorded
from offpath.trace import profile as profiles
from offpath.trace import sites

VARIABLE = "OFFPATH_PROFILE"

app = commands.alone()


@app.command(context_settings=commands.PASSES_ON, rich_help_panel=commands.MEASURE)
def profile_command(
    command: commands.CommandLine,
    output: Annotated[Path, typer.Option("-o", "--output", help="The profile to write.")] = Path("profile.jsonl"),
) -> None:
    """Run a program as it is and record its collectives, waits and one-sided operations, for `offpath plan`.

    Nothing is offloaded. One rank must see the folder of the profile (a shared file system, or this node).

    Examples:

        offpath profile -o profile.jsonl -- mpirun -np 4 ./my_program
    """
    mpis.executable(command[0])
    if mpis.launcher_kind(command[0]) is None and not own_rank.leads():
        argv, extra = injection.with_variables(command, variables(handover.ELSEWHERE))
        processes.become(argv, os.environ | extra)
    files.writable_file(output, "--output")
    with handover.folder(beside=output) as folder:
        prefix = folder / "rank"
        argv, extra = injection.with_variables(command, variables(prefix))
        result = processes.run(argv, os.environ | extra, capture=False, own_session=False)
        try:
            found = merge(prefix, output)
        except UserError as error:
            raise UserError(str(error), result.ending or error.exit_code) from None
    records = sum(len(rank.records) for rank in found.ranks)
    console.note(
        f"{len(found.ranks)} ranks, {found.end_ns / 1e9:.3f} s, {records} records: {output}. "
        f"Next: offpath plan {output}"
    )
    raise typer.Exit(result.exit_status)


def variables(prefix: Path) -> dict[str, str]:
    """What every rank needs in its environment to be recorded."""
    return {"LD_PRELOAD": injection.preload([str(built(paths().preload_library))]), VARIABLE: str(prefix)}


def merge(prefix: Path, output: Path) -> profiles.Profile:
    """One file of what the ranks wrote, and of where in the program that was. Raises UserError where that is of no use:
    what was there before stays then."""
    parts = sorted(prefix.parent.glob(prefix.name + ".*"))
    if not parts:
        raise UserError(
            "no rank recorded anything (no MPI program ran, or the ranks do not see this folder). Check the command.", 1
        )
    places, failure = set(), None
    with files.replacing(output) as file:
        for part in parts:
            for line in recorded.read(part):
                places.add(sites.place_of(line))
                failure = line.get("errno", failure)
                file.write(json.dumps(line) + "\n")
        found = sites.look_up(places - {None})
        file.write(json.dumps({"sites": [site.to_json() for site in found.values()]}) + "\n")
        if failure is not None:
            raise UserError(
                f"{output} is cut short ({write_error(failure)}). Make room there and record the run again.", 1
            )
        file.flush()
        return profiles.of_text(Path(file.name).read_text(encoding="utf-8"), output)
