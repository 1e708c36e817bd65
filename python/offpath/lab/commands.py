# SPDX-License-Identifier: BSD-3-Clause
"""`offpath lab ...`: the command line of the emulated cluster."""

import json
import os
from typing import Annotated, Optional

import typer

from offpath.base import commands, console, processes
from offpath.base.errors import UserError
from offpath.base.sizes import rate_text
from offpath.dpu.service import Architecture
from offpath.lab import dpus, inventory, launchers, run_command, slurm_commands, state
from offpath.lab import plan as planning
from offpath.lab.cluster import Lab
from offpath.lab.run_command import DEFAULT_NAME, NameArgument, NameOption

app = commands.group(
    """An emulated cluster on this machine (needs root).

Every node has a host and a DPU, each in its own network namespace, behind one switch port that both share and whose
rate is limited. Programs of Open MPI and MPICH are started in it with their own mpirun.""",
    commands.FIRST,
)

app.add_typer(slurm_commands.app, name="slurm")


@app.command()
def up(
    nodes: Annotated[int, typer.Option("--nodes", "-n", help=f"How many nodes, 1 to {planning.MAX_NODES}.")] = 2,
    rate: Annotated[
        str, typer.Option(help="Rate of each node's port in each direction, 1mbit to 100gbit.")
    ] = "250mbit",
    mtu: Annotated[int, typer.Option(help="Largest packet in bytes; 1500 in most networks.")] = 9000,
    latency: Annotated[
        str, typer.Option(help="What a packet takes from node to node besides, like 200us or 1ms.")
    ] = "0",
    name: NameOption = DEFAULT_NAME,
    dpu_slowdown: Annotated[
        float, typer.Option(help="How many times slower than the host a DPU is (by processor quota).")
    ] = 1.0,
    cores_per_node: Annotated[
        int, typer.Option(help="Cores of each node; nodes share cores when there are too few.")
    ] = 1,
    dpu: Annotated[
        Optional[Architecture],
        typer.Option(help="Each DPU runs a device service of this architecture, which its node's programs use."),
    ] = None,
    dpus: Annotated[
        int,
        typer.Option(
            help="Each node has so many DPUs (1 or 2) that are machines: nothing is shared with their host but a link. "
            "Default: one that shares all but the network."
        ),
    ] = 0,
    dpu_cores: Annotated[
        int, typer.Option(help="Cores of each such DPU. Default: those of its node.", show_default=False)
    ] = 0,
    link_rate: Annotated[
        Optional[str], typer.Option(help="Rate of the link of such a DPU to its host. Default: what the machine does.")
    ] = None,
    link_latency: Annotated[str, typer.Option(help="What a packet takes on it besides, like 5us.")] = "0",
    loss_up: Annotated[
        float, typer.Option(help="Percent of packets that are lost on the way to the switch.", show_default=False)
    ] = 0,
    loss_down: Annotated[
        float, typer.Option(help="Percent of packets that are lost on the way from it.", show_default=False)
    ] = 0,
    rdma: Annotated[
        bool,
        typer.Option(
            "--rdma",
            help="Nodes are virtual machines with a kernel and an RDMA device of their own. Times mean nothing there.",
        ),
    ] = False,
) -> None:
    """Bring up a lab.

    The default, 250 Mbit/s with packets of 9000 bytes, is slow enough that a byte costs about as little processor time
    as it does with a real RDMA network.

    Examples:

        offpath lab up

        offpath lab up --nodes 4 --rate 1gbit --name fast

        offpath lab up --latency 200us

        offpath lab up --loss-down 0.1

        offpath lab up --dpu aarch64

        offpath lab up --dpus 1 --link-rate 1gbit --link-latency 50us

        offpath lab up --rdma
    """
    lab = Lab(
        nodes, rate, mtu, name, dpu_slowdown, cores_per_node, dpu.value if dpu else None, latency, dpus, dpu_cores,
        link_rate, link_latency, planning.Loss.make(loss_up, loss_down), rdma,
    )  # fmt: skip
    if console.is_interactive():
        with console.err.status("lab") as status:
            lab.up(progress=lambda step: status.update(f"lab {name}: {step}"))
    else:
        lab.up()
    console.note(f"lab {name} is up: {nodes} nodes, {rate_text(lab.plan.rate_bits_per_s)}, MTU {mtu}.")


@app.command()
def down(
    name: NameArgument = DEFAULT_NAME,
    everything: Annotated[bool, typer.Option("--all", help="Take down every lab of this machine.")] = False,
) -> None:
    """Take a lab down: ends all processes in it and removes it, also one that was only half made.

    Examples:

        offpath lab down

        offpath lab down fast

        offpath lab down --all
    """
    state.require_root()
    planning.check_name(name)
    names = inventory.lab_names() if everything else [name]
    for each in names:
        if not inventory.remove(each):
            raise UserError(f"There is no lab named {each}. Run `offpath lab status` to see those there are.", 1)
        console.note(f"lab {each} is down.")


@app.command()
def status(
    name: NameArgument = "",
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Measure what a link carries, some seconds long: whether the machine keeps up with the rate.",
        ),
    ] = False,
    as_json: commands.AsJson = False,
) -> None:
    """Show the labs of this machine.

    Examples:

        offpath lab status

        offpath lab status fast --measure
    """
    if name:
        state.load(name)
    if measure:
        state.require_root()
    rows = [_status_row(each, measure) for each in ([name] if name else inventory.lab_names())]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        console.out.print(_status_line(row), soft_wrap=True)
    if not rows:
        console.out.print("No lab is up.")


app.command(context_settings=commands.PASSES_ON)(run_command.run)


@app.command("exec", context_settings=commands.PASSES_ON)
def execute(
    place: Annotated[str, typer.Argument(help="head (where mpirun is), node1, node1-dpu, node1-dpu2, ...")],
    command: Annotated[Optional[list[str]], typer.Argument(metavar="[COMMAND]", help="Default: a shell.")] = None,
    name: NameOption = DEFAULT_NAME,
) -> None:
    """Run a command at a place of a lab, as one would after ssh. Ends with the command's status.

    mpirun of Open MPI and MPICH reaches the nodes from there without any option.

    Examples:

        offpath lab exec node1-dpu -- hostname

        offpath lab exec head -- mpirun -H node1,node2 ./my_program

        offpath lab exec node1
    """
    state.require_root()
    lab = Lab.attach(name)
    place = place.replace("/", "-")
    if place not in lab.plan.places:
        raise UserError(f"Lab {name} has no place {place}. It has: {', '.join(lab.plan.places)}.")
    command = (command or [])[1 if command and command[0] == "--" else 0 :]  # click leaves it behind an argument
    words = lab.inside(place, command or [os.environ.get("SHELL", "/bin/sh")])
    processes.become(words, os.environ | launchers.environment(lab.plan) | dpus.variables(lab.plan))


def _status_row(name: str, measure: bool) -> dict:
    row: dict = {"name": name, "process_count": len(inventory.processes(name))}
    try:
        lab = Lab.attach(name)
    except UserError:
        return row | {"state": "incomplete"}
    plan = lab.plan
    missing = len(plan.places) - len(inventory.namespaces(name))
    row |= {
        "state": "up" if missing == 0 else f"damaged: {missing} namespaces are gone",
        "node_count": plan.node_count,
        "rate_bits_per_s": plan.rate_bits_per_s,
        "mtu_bytes": plan.mtu_bytes,
        "node_cores": plan.node_cores,
        "dpu_slowdown": plan.dpu_slowdown,
        "dpu_arch": plan.dpu_arch,
        "dpus": plan.machines.per_node if plan.machines else 0,
        "loss_up_percent": plan.loss.up if plan.loss else 0,
        "loss_down_percent": plan.loss.down if plan.loss else 0,
    }
    if measure and missing == 0:
        from offpath.lab.transfer import measure as measure_link

        row["measured_bits_per_s"] = round(measure_link(lab, plan.nodes[0], plan.nodes[-1]))
    return row


def _status_line(row: dict) -> str:
    if "node_count" not in row:
        return f"{row['name']}: incomplete (its `lab up` did not finish); run: offpath lab down {row['name']}"
    parts = [
        f"{row['name']}: {row['state']}",
        f"{row['node_count']} nodes",
        f"{rate_text(row['rate_bits_per_s'])}",
        f"MTU {row['mtu_bytes']}",
        "cores " + " ".join(",".join(map(str, cores)) for cores in row["node_cores"]),
    ]
    if row["dpu_slowdown"] != 1:
        parts.append(f"DPUs {row['dpu_slowdown']:g} times slower")
    if row["dpus"]:
        parts.append(f"{row['dpus']} DPUs on each node that are machines")
    if row["loss_up_percent"] or row["loss_down_percent"]:
        parts.append(f"links lose {row['loss_up_percent']:g} % up, {row['loss_down_percent']:g} % down")
    if row["dpu_arch"]:
        parts.append(f"devices on {row['dpu_arch']} DPUs")
    parts.append(f"{row['process_count']} processes")
    if "measured_bits_per_s" in row:
        measured = row["measured_bits_per_s"]
        parts.append(f"measured {measured / 1e6:.1f} Mbit/s ({100 * measured / row['rate_bits_per_s']:.1f} %)")
    return ", ".join(parts)
