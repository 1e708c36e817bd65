# SPDX-License-Identifier: BSD-3-Clause
"""The traffic model: the published table, sums over single packets, what the command prints."""

import json

import pytest
from conftest import ROOT, assert_one_line_error, offpath
from offpath.plan import traffic

PUBLISHED = traffic.FatTree()  # Khalilov et al., SC 2024, with the distances to lower numbers mended
ROWS = [
    (16, 256, 480, 480, 480, 1.88),
    (64, 4544, 8820, 18304, 18304, 1.94),
    (256, 71936, 142800, 368128, 368128, 1.99),
    (1024, 1147904, 2291520, 6191104, 6191104, 2.00),
]


@pytest.mark.parametrize("nodes,multicast,ring,direct,doubling,ratio", ROWS)
def test_the_published_table(nodes, multicast, ring, direct, doubling, ratio):
    [row] = traffic.traffic(PUBLISHED, [nodes])
    assert [row[name] for name in ("multicast", "ring", "direct", "doubling")] == [multicast, ring, direct, doubling]
    assert round(row["ring_to_multicast"], 2) == ratio


@pytest.mark.parametrize("nodes,ring,doubling", [(64, 8568, 13184), (256, 141780, 249344), (1024, 2287428, 4143104)])
def test_what_was_published_counts_ways_down_as_short(nodes, ring, doubling):
    """The same sums with the published distance, which is signed: so it is the same tree."""

    class Signed(traffic.FatTree):
        def links(self, a, b):
            return traffic.SAME_EDGE if b < a else super().links(a, b)

    assert traffic.ring(Signed(), nodes) == ring
    assert traffic.doubling(Signed(), nodes) == doubling


@pytest.mark.parametrize("tree", [PUBLISHED, traffic.FatTree(4, 2), traffic.FatTree(8, 3)])
@pytest.mark.parametrize("nodes", [2, 3, 7, 12, 16, 17, 31])
def test_direct_is_the_sum_over_all_pairs(tree, nodes):
    if nodes <= tree.most_nodes:
        pairs = sum(tree.links(a, b) for a in range(nodes) for b in range(nodes) if a != b)
        assert traffic.direct(tree, nodes) == pairs


def test_multicast_crosses_each_link_once():
    """One way up, then each edge switch and each node once; over a core each pod once."""
    assert [PUBLISHED.multicast_links(nodes) for nodes in (2, 16, 17, 32, 33)] == [2, 16, 19, 34, 39]


def test_thousands_of_nodes_of_a_full_tree():
    [row] = traffic.traffic(traffic.FatTree(32, 16), [8192])
    assert 1.99 < row["ring_to_multicast"] < 2.01
    [odd] = traffic.traffic(traffic.FatTree(32, 16), [5000])
    assert odd["doubling"] is None


def test_the_command():
    result = json.loads(offpath("plan", "traffic", "--nodes", "16,64", "--size", "4K", "--json").stdout)
    assert result["unit_bytes"] == 4096 and [row["multicast"] for row in result["rows"]] == [256, 4544]
    text = offpath("plan", "traffic", "--nodes", "3,16", "--size", "4K").stdout
    assert str(256 * 4096) in text and "1.88" in text and "-" in text
    assert_one_line_error(offpath("plan", "traffic", "--nodes", "4096"), "4096", "1024", "--edges 16")
    assert_one_line_error(offpath("plan", "traffic", "--radix", "5"), "5", "even")


def test_the_guide_has_the_table_that_is_printed():
    guide = (ROOT / "docs" / "guide-planner.md").read_text()
    for row in traffic.traffic(PUBLISHED, [nodes for nodes, *_ in ROWS]):
        cells = (row["nodes"], row["multicast"], row["ring"], row["direct"], f"{row['ring_to_multicast']:.2f}")
        assert "| " + " | ".join(map(str, cells)) + " |" in guide
