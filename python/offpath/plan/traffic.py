# SPDX-License-Identifier: BSD-3-Clause
"""`offpath plan traffic`: how many links the bytes of an allgather cross in a fat tree, with multicast and without.

Nodes fill a tree of three layers in their order: `radix` / 2 nodes at an edge switch, `edges` of those in a pod, pods
joined by a core. One unit is what each node contributes. Source: the traffic model of Khalilov et al. (SC 2024), whose
distances of nodes to lower numbers are mended here.
"""

import json
from dataclasses import dataclass
from typing import Annotated, Optional

import typer

from offpath.base import console
from offpath.base.errors import UserError
from offpath.base.sizes import parse_sizes, size_text
from offpath.base.tables import Table
from offpath.plan.scale import parse_counts

SAME_EDGE, SAME_POD, OVER_CORE = 2, 4, 6  # links from one node to another


@dataclass(frozen=True)
class FatTree:
    radix: int = 32
    edges: int = 2  # edge switches of a pod

    @property
    def edge_nodes(self) -> int:
        return self.radix // 2

    @property
    def pod_nodes(self) -> int:
        return self.edge_nodes * self.edges

    @property
    def most_nodes(self) -> int:
        return self.pod_nodes * self.radix

    def links(self, a: int, b: int) -> int:
        """That a packet from node a to another node b crosses."""
        if a // self.edge_nodes == b // self.edge_nodes:
            return SAME_EDGE
        return SAME_POD if a // self.pod_nodes == b // self.pod_nodes else OVER_CORE

    def multicast_links(self, nodes: int) -> int:
        """That one packet to all others crosses; over a core it also comes back to the pod that it is from."""
        edges, pods = -(-nodes // self.edge_nodes), -(-nodes // self.pod_nodes)
        up = 1 + (edges > 1) + (pods > 1)
        return up + (pods if pods > 1 else 0) + (edges - 1) + (nodes - 1)


def multicast(tree: FatTree, nodes: int) -> int:
    return nodes * tree.multicast_links(nodes)


def ring(tree: FatTree, nodes: int) -> int:
    """Each edge of the ring carries all units but one."""
    return (nodes - 1) * sum(tree.links(node, (node + 1) % nodes) for node in range(nodes))


def direct(tree: FatTree, nodes: int) -> int:
    """Each unit straight from its owner to each other node."""
    return OVER_CORE * nodes * nodes - _saved(tree.edge_nodes, nodes, 2) - _saved(tree.pod_nodes, nodes, 2) - 2 * nodes


def _saved(group: int, nodes: int, links: int) -> int:
    """By pairs that meet below: each is in one group of so many nodes, the last of which may not be full."""
    full, rest = divmod(nodes, group)
    return links * (full * group**2 + rest**2)


def doubling(tree: FatTree, nodes: int) -> Optional[int]:
    """With the node at distance 1, 2, 4, ... everything that either has: for powers of two."""
    if nodes & (nodes - 1):
        return None
    return sum(
        distance * tree.links(node, node ^ distance)
        for node in range(nodes)
        for distance in (1 << bit for bit in range(nodes.bit_length() - 1))
    )


def traffic(tree: FatTree, counts: list[int]) -> list[dict]:
    rows = []
    for nodes in counts:
        if nodes > tree.most_nodes:
            raise UserError(
                f"{nodes} nodes are too many for this tree (with --radix {tree.radix} --edges {tree.edges} it has "
                f"{tree.most_nodes}). Give fewer, or more edge switches in a pod, like --edges {tree.radix // 2}."
            )
        row = {"nodes": nodes, "multicast": multicast(tree, nodes), "ring": ring(tree, nodes)}
        row |= {"direct": direct(tree, nodes), "doubling": doubling(tree, nodes)}
        rows.append(row | {"ring_to_multicast": row["ring"] / row["multicast"]})
    return rows


def traffic_command(
    nodes: Annotated[str, typer.Option(help="Numbers of nodes.")] = "16,64,256,1024",
    radix: Annotated[int, typer.Option(min=4, max=256, help="Ports of a switch.")] = 32,
    edges: Annotated[int, typer.Option(min=1, max=128, help="Edge switches of a pod.")] = 2,
    size: Annotated[Optional[str], typer.Option(help="What each node contributes: prints bytes, not units.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Count what the links of a fat tree carry in an allgather: by multicast, around a ring, directly, by doubling.

    Each link that a byte crosses counts. The defaults are the published tree; a full one has half as many edge
    switches in a pod as a switch has ports.

    Examples:

        offpath plan traffic

        offpath plan traffic --nodes 512,4096 --edges 16 --size 4M
    """
    if radix % 2:
        raise UserError(f"--radix {radix} is odd (half of a switch's ports lead down). Give an even number.")
    tree = FatTree(radix, edges)
    rows = traffic(tree, parse_counts(nodes))
    unit = parse_sizes(size)[0] if size else 1
    if as_json:
        print(json.dumps({"radix": radix, "edges": edges, "unit_bytes": unit, "rows": rows}, indent=1))
        return
    title = f"allgather of {size_text(unit)}, bytes on links" if size else "allgather, units on links"
    table = Table("nodes", "multicast", "ring", "direct", "doubling", "ring / multicast", title=title)
    for row in rows:
        cells = [row[name] for name in ("multicast", "ring", "direct", "doubling")]
        shown = ["-" if cell is None else str(cell * unit) for cell in cells]
        table.add_row(str(row["nodes"]), *shown, f"{row['ring_to_multicast']:.2f}")
    console.out.print(table)
