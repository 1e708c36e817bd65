# SPDX-License-Identifier: BSD-3-Clause
"""Builds a lab's namespaces, bridges and rate-limited links with ip(8) and tc(8).

Everything lives inside the lab's own namespaces, the switch in that of the launching side: nothing of the machine is
touched, two labs never meet, and removing the namespaces removes it all.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.lab import plan as planning
from offpath.lab.plan import HEAD, Dpu, Loss, Machines, Plan, namespace

BRIDGE = "type bridge stp_state 0 forward_delay 0 mcast_snooping 0"


def build(plan: Plan, progress: Callable[[str], None]) -> None:
    progress("namespaces")
    _ip("".join(f"netns add {namespace(plan.name, place)}\n" for place in plan.places))
    for place in plan.places:
        _silence_ipv6(namespace(plan.name, place))
    head = namespace(plan.name, HEAD)
    _spare_firewall(head)
    progress("switch")
    _ip(
        f"""link set lo up
link add br0 mtu {plan.mtu_bytes} {BRIDGE}
link set br0 up
address add {planning.HEAD_ADDRESS}/{planning.SUBNET_BITS} dev br0
""",
        head,
    )
    if plan.latency_s:
        _delay_uplinks(plan, head)
    # A machine's device is a port of a bridge, which the other kind is not.
    share = _share_by_macvlan if _has_macvlan(head) and not plan.rdma else _share_by_bridge
    for number, node in enumerate(plan.nodes, start=1):
        progress(node)
        _ip(_uplink(plan, number) + share(plan, number, node), head)
        _tc(_port_limits(plan, number) + (_losses(plan.loss, number) if plan.loss else ""), head)
        inside = _socket(plan) if plan.rdma else _station(plan, planning.host_address(number))
        _ip(inside, namespace(plan.name, node))
        for dpu in plan.dpus_of(node):
            _ip(_station(plan, dpu.address), namespace(plan.name, dpu.place))
            if plan.machines:
                _link(plan, plan.machines, dpu)


def _uplink(plan: Plan, number: int) -> str:
    """From the node to the switch."""
    mtu = f"mtu {plan.mtu_bytes}"
    lines = [f"link add port{number} {mtu} type veth peer name uplink{number} {mtu}"]
    if plan.latency_s:  # the devices are there: _delay_uplinks
        lines = [f"link set port{number} {mtu}", f"link set uplink{number} {mtu}"]
    lines.append(f"link set port{number} master br0 up")
    return "\n".join(lines) + "\n"


def _share_by_macvlan(plan: Plan, number: int, node: str) -> str:
    """Host and DPU are two addresses of one port: no device more for a frame to pass than a network card has."""
    lines = [f"link set uplink{number} up"]
    for place in (node, *(dpu.place for dpu in plan.dpus_of(node))):
        where = namespace(plan.name, place)
        lines.append(f"link add eth0 link uplink{number} netns {where} mtu {plan.mtu_bytes} type macvlan mode bridge")
    return "\n".join(lines) + "\n"


def _share_by_bridge(plan: Plan, number: int, node: str) -> str:
    """The same with a small bridge and two more links, on kernels without macvlan: each frame costs more."""
    mtu = f"mtu {plan.mtu_bytes}"
    lines = [f"link add {node} {mtu} {BRIDGE}", f"link set {node} up", f"link set uplink{number} master {node} up"]
    dpus = [(f"dpu{number}x{dpu.number}", dpu.place) for dpu in plan.dpus_of(node)]
    for device, place in ((f"host{number}", node), *dpus):
        lines += [
            f"link add {device} {mtu} type veth peer name eth0 {mtu} netns {namespace(plan.name, place)}",
            f"link set {device} master {node} up",
        ]
    return "\n".join(lines) + "\n"


def _link(plan: Plan, machines: Machines, dpu: Dpu) -> None:
    """What a host and its DPU say to each other passes a link of their own, whatever address they use: by a route."""
    host, dpu_side = namespace(plan.name, dpu.node), namespace(plan.name, dpu.place)
    at_host, at_dpu, mtu = f"dpu{dpu.number}", f"host{dpu.number}", f"mtu {plan.mtu_bytes}"
    if machines.link_latency_s:
        _delay(host, machines.link_latency_s, [f"{at_host}={at_dpu}"])
        _ip(f"link set {at_host} {mtu}\nlink set {at_dpu} {mtu} netns {dpu_side}\n", host)
    else:
        _ip(f"link add {at_host} {mtu} type veth peer name {at_dpu} {mtu} netns {dpu_side}\n", host)
    for where, device, peer, own in (
        (host, at_host, dpu.address, planning.host_address(dpu.node_number)),
        (dpu_side, at_dpu, planning.host_address(dpu.node_number), dpu.address),
    ):
        _ip(f"link set {device} up\nroute add {peer}/32 dev {device} src {own}\n", where)
        if machines.link_rate_bits_per_s:
            _tc(f"qdisc add dev {device} root {_limit(plan, machines.link_rate_bits_per_s)}\n", where)


def _has_macvlan(head: str) -> bool:
    """Whether this kernel knows it."""
    tried = ["ip", "-n", head, "link", "add", "trial", "link", "br0", "type", "macvlan", "mode", "bridge"]
    if subprocess.run(tried, capture_output=True).returncode != 0:
        return False
    _ip("link del trial\n", head)
    return True


def _delay_uplinks(plan: Plan, head: str) -> None:
    """A frame passes two uplinks from node to node."""
    _delay(head, plan.latency_s / 2, [f"port{number}=uplink{number}" for number in range(1, plan.node_count + 1)])


def _delay(where: str, seconds: float, links: list[str]) -> None:
    """Starts what these links run through, both ends in the namespace `where`; it ends with the lab."""
    program = [str(paths().tool("offpath-delay")), "--delay-us", f"{seconds * 1e6:g}", *links]
    read_end, write_end = os.pipe()
    with open(read_end, "rb") as output:
        subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{where}", *program],
            stdin=subprocess.DEVNULL, stdout=write_end, stderr=write_end, start_new_session=True,
        )  # fmt: skip
        os.close(write_end)
        answer = output.readline().decode().strip()
    if answer != "ready":
        raise UserError(f"The lab's links cannot be delayed ({answer or 'offpath-delay ended'}). Give no latency.")


def _port_limits(plan: Plan, number: int) -> str:
    """Both directions of the uplink; each end limits what it sends."""
    limit = _limit(plan, plan.rate_bits_per_s)
    return "".join(f"qdisc add dev {device}{number} root {limit}\n" for device in ("port", "uplink"))


def _limit(plan: Plan, rate: int) -> str:
    burst = max(planning.BURST_BYTES, 2 * plan.mtu_bytes)
    return f"tbf rate {rate}bit burst {burst} latency {planning.QUEUE_MS}ms"


def _losses(loss: Loss, number: int) -> str:
    """At the switch's port, behind the limits of what comes in and before those of what goes out."""
    lines = [f"qdisc add dev port{number} clsact"]
    for direction, percent in (("ingress", loss.up), ("egress", loss.down)):
        if percent:
            program = _losing(percent, loss.only_multicast)
            lines.append(f"filter add dev port{number} {direction} bpf direct-action bytecode {program}")
    return "\n".join(lines) + "\n"


def _losing(percent: float, only_multicast: bool) -> str:
    """A filter program (classic BPF) that throws dice for each packet: 2 drops it, 0 lets it pass."""
    random, most = 0xFFFFF000 + 56, 0xFFFFFFFF  # where the kernel answers with a random number, and the largest one
    code = [(0x20, 0, 0, random), (0x25, 1, 0, round(percent / 100 * most)), (6, 0, 0, 2), (6, 0, 0, 0)]
    if only_multicast:  # the first byte of the address on the link is 1; of a broadcast it is 255
        code = [(0x30, 0, 0, 0), (0x15, 0, 3, 1), *code]
    return f'"{len(code)},{",".join(" ".join(map(str, line)) for line in code)}"'


def _station(plan: Plan, address: str) -> str:
    whole = " gso_max_segs 1" if plan.loss else ""
    return f"link set lo up\naddress add {address}/{planning.SUBNET_BITS} dev eth0\nlink set eth0 up{whole}\n"


def _socket(plan: Plan) -> str:
    """Where a machine is plugged in; its address is its own."""
    lines = [f"link add socket mtu {plan.mtu_bytes} {BRIDGE}", "tuntap add tap0 mode tap"]
    for device in ("eth0", "tap0"):
        lines.append(f"link set {device} mtu {plan.mtu_bytes} master socket up")
    return "\n".join(["link set lo up", *lines, "link set socket up"]) + "\n"


def _silence_ipv6(name: str) -> None:
    """Address discovery puts packets on the links that nobody asked for. Kernels without IPv6 have nothing to do."""
    script = 'for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do [ ! -w "$f" ] || echo 1 > "$f"; done'
    _run(["nsenter", f"--net=/run/netns/{name}", "sh", "-c", script], "")


def _spare_firewall(name: str) -> None:
    """A switch has no packet filter; where the kernel can show bridged packets to one, that costs time per packet."""
    script = 'for f in /proc/sys/net/bridge/bridge-nf-call-*; do [ ! -w "$f" ] || echo 0 > "$f"; done'
    _run(["nsenter", f"--net=/run/netns/{name}", "sh", "-c", script], "")


def _ip(batch: str, inside: str | None = None) -> None:
    _run(["ip", *(["-n", inside] if inside else []), "-batch", "-"], batch)


def _tc(batch: str, inside: str) -> None:
    _run(["tc", "-n", inside, "-batch", "-"], batch)


def _run(argv: list[str], batch: str) -> None:
    result = subprocess.run(argv, input=batch, capture_output=True, text=True)
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines() or ["no message"]
        raise UserError(
            f"The lab's network could not be built ({argv[0]}: {lines[0]}). "
            "It needs a kernel with network namespaces, veth, bridge and tbf."
        )
