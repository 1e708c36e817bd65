# SPDX-License-Identifier: BSD-3-Clause
"""docs/notebooks/papers.ipynb: it runs, and what it defines gives the figures that were published."""

import ast
import math
from types import SimpleNamespace

import nbformat
import pytest
from conftest import ROOT
from nbclient import NotebookClient
from offpath.plan import machine

NOTEBOOK = nbformat.read(ROOT / "docs" / "notebooks" / "papers.ipynb", as_version=4)


def defined() -> SimpleNamespace:
    """By the notebook, without what its cells show."""
    names: dict = {}
    for cell in NOTEBOOK.cells:
        if cell.cell_type == "code":
            body = [each for each in ast.parse(cell.source).body if not isinstance(each, ast.Expr)]
            exec(compile(ast.Module(body, []), "papers.ipynb", "exec"), names)
    return SimpleNamespace(**names)


papers = defined()
PUBLISHED = papers.FatTree()  # Khalilov et al., SC 2024, with the distances to lower numbers mended


def test_the_notebook_runs():
    assert not [cell for cell in NOTEBOOK.cells if cell.get("outputs")]  # kept without
    notebook = nbformat.from_dict(NOTEBOOK)
    NotebookClient(notebook, timeout=100, kernel_name="python3").execute()  # raises what a cell raises
    curves, matmul, tables, traffic = (str(cell.outputs) for cell in notebook.cells if cell.get("outputs"))
    assert "image/png" in curves and all(name in curves for name in ("T_network", "DPU", "4096"))
    assert "slabs" in matmul and "4096" in matmul
    assert "Octopus" in tables and "455.49" in tables
    assert all(figure in traffic for figure in ("1147904", "2291520", "6191104", "1.88"))


def test_the_law_is_that_of_the_papers():
    node = papers.Node(flop_per_s=1e12, memory_bytes_per_s=1e11, link_bytes_per_s=1e10, fast_bytes=8e6)
    multiply = papers.matmul(1000, 4, node)
    assert multiply.compute_s == pytest.approx(2e9 / 4e12)
    assert multiply.memory_s == pytest.approx(8 * 2e9 / (4 * 1000 * 1e11))
    assert multiply.network_s == pytest.approx(8 * 2e6 / (2 * 1e10))
    assert papers.matmul(1000, 4, node, copies=4).network_s == pytest.approx(multiply.network_s / 2)
    torus, full = papers.fft(512, 64, node, torus=3), papers.fft(512, 64, node)
    assert torus.network_s == pytest.approx(4 * full.network_s)
    assert full.no_overlap_s == pytest.approx(full.compute_s + full.memory_s + full.network_s)
    full_overlap_s = max(full.compute_s, full.memory_s, full.network_s)
    assert full_overlap_s <= full.dpu_s(1.0) <= full.no_overlap_s == full.dpu_s(0.0)
    # A slab is a pencil with one row; without latency both approach full bisection.
    assert papers.pencil_s(1e9, 1, 64, 0, 1e10) == pytest.approx(papers.slab_s(1e9, 64, 0, 1e10))
    assert papers.slab_s(512**3, 64, 0, 1e10) == pytest.approx(full.network_s / papers.EXCHANGES, rel=0.02)
    points = 512.0**3
    network_bound = 5 * points * math.log2(points) / (4 * 16 * points / (64 * 1e10))
    assert papers.peak_flop_per_s(points, 64, 1e10) == pytest.approx(network_bound)


def test_the_law_takes_a_machine():
    assert papers.Node.of(machine.default()) == papers.Node(2e9, 20e9, 0.125e9)


def test_curves_are_over_powers_of_two():
    found = papers.curve(lambda nodes: papers.fft(512, nodes, papers.Node()), overlap=1.0, most_nodes=5)
    assert list(found.index) == [1, 2, 4]
    at = papers.fft(512, 4, papers.Node())
    assert found.loc[4, "DPU"] == at.dpu_s(1.0) and found.loc[4, "T_memory"] == at.memory_s
    assert found.loc[4, "Tflop/s"] == pytest.approx(15 * 512**3 * 9 / at.dpu_s(1.0) / 1e12)


def test_published_tables_add_up():
    for setting, rows in papers.PUBLISHED.items():
        for side in (0, 1):
            calls = sum(times[side] for name, times in papers.calls(rows).items() if name)
            assert calls == pytest.approx(rows[papers.COMMUNICATION][side], abs=0.02), setting
    # The application's row of each, within what the assumptions say they can do.
    errors = papers.predictions().xs(papers.APPLICATION, level="row")["transfer error"]
    assert len(errors) == 4 and errors.abs().max() < 0.15


@pytest.mark.parametrize(
    "nodes,multicast,ring,direct,ratio",
    [
        (16, 256, 480, 480, 1.88),
        (64, 4544, 8820, 18304, 1.94),
        (256, 71936, 142800, 368128, 1.99),
        (1024, 1147904, 2291520, 6191104, 2.00),
    ],
)
def test_the_published_traffic(nodes, multicast, ring, direct, ratio):
    row = papers.traffic(PUBLISHED, [nodes]).loc[nodes]
    assert list(row[["multicast", "ring", "direct", "doubling"]]) == [multicast, ring, direct, direct]
    assert round(row["ring / multicast"], 2) == ratio


@pytest.mark.parametrize("nodes,ring,doubling", [(64, 8568, 13184), (256, 141780, 249344), (1024, 2287428, 4143104)])
def test_what_was_published_counts_ways_down_as_short(nodes, ring, doubling):
    """The same sums with the published distance, which is signed: so it is the same tree."""

    class Signed(papers.FatTree):
        def links(self, a, b):
            return papers.SAME_EDGE if b < a else super().links(a, b)

    assert papers.ring(Signed(), nodes) == ring
    assert papers.doubling(Signed(), nodes) == doubling


@pytest.mark.parametrize("tree", [PUBLISHED, papers.FatTree(4, 2), papers.FatTree(8, 3)])
@pytest.mark.parametrize("nodes", [2, 3, 7, 12, 16, 17, 31])
def test_direct_is_the_sum_over_all_pairs(tree, nodes):
    if nodes <= tree.most_nodes:
        pairs = sum(tree.links(a, b) for a in range(nodes) for b in range(nodes) if a != b)
        assert papers.direct(tree, nodes) == pairs


def test_multicast_crosses_each_link_once():
    """One way up, then each edge switch and each node once; over a core each pod once."""
    assert [PUBLISHED.multicast_links(nodes) for nodes in (2, 16, 17, 32, 33)] == [2, 16, 19, 34, 39]


def test_thousands_of_nodes_of_a_full_tree():
    found = papers.traffic(papers.FatTree(32, 16), [8192, 5000])
    assert 1.99 < found.loc[8192, "ring / multicast"] < 2.01
    assert math.isnan(found.loc[5000, "doubling"])


def test_more_nodes_than_the_tree_has_are_refused():
    with pytest.raises(ValueError, match="4096 nodes are too many.*1024"):
        papers.traffic(PUBLISHED, [4096])
