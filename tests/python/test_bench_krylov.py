# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench krylov` with tiny systems: each of its columns, matrices from files, and the lab."""

import json

import numpy
import pytest
from bench_support import assert_checks
from conftest import offpath, requires_root, succeeded
from offpath.base.errors import UserError
from offpath.bench import matrix_market
from offpath.bench.krylov_model import Model, Parts
from offpath.split import Machine, Side
from petsc_support import plugin

TINY = ("--runs", "1", "--iterations", "3", "--accuracy-iterations", "8")


def bench(tmp_path, *arguments: str) -> dict:
    plugin()
    file = tmp_path / "out.json"
    result = succeeded(offpath("bench", "krylov", *TINY, *arguments, "--json", str(file)))
    written = json.loads(file.read_text())
    names = [f"{solver}/krylov_{peer}_ratio" for solver in ("cg", "pipecg") for peer in ("same_ranks", "all_cores")]
    assert_checks(written, result, [name for name in names if "--lab" not in arguments or "same_ranks" in name])
    return written


def finite_elements(side: int) -> tuple[int, dict[tuple[int, int], float]]:
    """Stiffness of linear triangles on a square mesh, plus a mass term: (size, lower triangle)."""
    element = numpy.array([[1.0, -0.5, -0.5], [-0.5, 0.5, 0.0], [-0.5, 0.0, 0.5]])  # right angle first
    size, entries = side * side, {}
    for y in range(side - 1):
        for x in range(side - 1):
            low, high = x + side * y, x + 1 + side * (y + 1)
            for corners in ((low, low + 1, low + side), (high, high - 1, high - side)):
                for i, row in enumerate(corners):
                    for j, column in enumerate(corners):
                        if row >= column:
                            here = float(element[i][j]) + (0.05 if row == column else 0)
                            entries[row, column] = entries.get((row, column), 0.0) + here
    return size, {key: value for key, value in entries.items() if value}


def write_matrix(file, size, entries) -> None:
    lines = [f"{row + 1} {column + 1} {value!r}" for (row, column), value in entries.items()]
    header = f"%%MatrixMarket matrix coordinate real symmetric\n% a mesh\n{size} {size} {len(lines)}\n"
    file.write_text(header + "\n".join(lines) + "\n")


@pytest.mark.machine
def test_every_column(tmp_path):
    result = bench(tmp_path, "--grid", "6", "--phi", "0,0.3")
    rows = result["rows"]
    ours, theirs = ["offpath_cg", "offpath_pipecg"], ["cg", "pipecg"]
    assert [(row["setting"], row["solver"]) for row in rows] == [
        *(("same ranks", each) for each in theirs), *(("all cores", each) for each in theirs + ours),
        *(("phi 0", each) for each in ours), *(("phi 0.3", each) for each in ours),
        *(("leaders 1", each) for each in ours), ("preloaded", "pipecg"),
        *(("preloaded too", each) for each in ours),
        *(("accuracy", each) for each in theirs + ours),
    ]  # fmt: skip
    for row in rows:
        assert 0 < row["iteration_min_ns"] <= row["iteration_ns"] <= row["iteration_max_ns"]
        assert 0 < row["roofline_ns"] and 0 < row["predicted_ns"]
        assert 0 <= row["sum_ns"] < row["iteration_max_ns"]
        assert row["history_difference"] < 1e-6 and row["drift"] < 1e-6
    assert {row["iterations"] for row in rows if row["setting"] == "accuracy"} == {8}
    assert set(result["meta"]["best_phi"]) == set(ours)


@pytest.mark.nightly
@pytest.mark.machine
def test_a_matrix_of_a_mesh(tmp_path):
    file = tmp_path / "mesh.mtx"
    size, entries = finite_elements(9)
    write_matrix(file, size, entries)
    result = bench(tmp_path, "--matrix", str(file), "--phi", "0")
    assert result["meta"]["matrix"] == "mesh.mtx"
    off_diagonal = sum(row != column for row, column in entries)
    assert (result["meta"]["rows"], result["meta"]["entries"]) == (size, len(entries) + off_diagonal)
    assert all(row["history_difference"] < 1e-6 for row in result["rows"])


def test_the_binary_form_holds_what_the_file_says(tmp_path):
    file, binary = tmp_path / "mesh.mtx", tmp_path / "mesh.petsc"
    size, entries = finite_elements(4)
    write_matrix(file, size, entries)
    matrix_market.convert(file, binary)
    data = binary.read_bytes()
    _, rows, columns, count = numpy.frombuffer(data, ">i4", 4)
    lengths = numpy.frombuffer(data, ">i4", size, 16)
    indices = numpy.frombuffer(data, ">i4", count, 16 + 4 * size)
    values = numpy.frombuffer(data, ">f8", count, 16 + 4 * size + 4 * count)
    assert (rows, columns, lengths.sum()) == (size, size, count)
    found = dict(zip(zip(numpy.repeat(range(size), lengths), indices, strict=True), values, strict=True))
    assert found == entries | {(column, row): value for (row, column), value in entries.items()}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 1 1\n1 1 1\n",
        "%%MatrixMarket matrix array real general\n1 1\n1\n",
        "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n",
        "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 1\n0 1 1\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 x 1\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 99999999999999\n1 1 1\n",
    ],
)
def test_other_files_are_refused(text, tmp_path):
    file = tmp_path / "bad.mtx"
    file.write_text(text)
    with pytest.raises(UserError, match="bad.mtx cannot be solved with"):
        matrix_market.convert(file, tmp_path / "out")


def test_the_model_adds_up_parts():
    parts = Parts(
        {
            "precondition": 1e-9, "product": 20e-9, "update": 2e-9, "dot": 1.5e-9, "norm": 1e-9, "host_pass": 3e-9,
            "product_beside_pass": 22e-9, "pass_beside_product": 10e-9, "product_beside_product": 24e-9,
            "update_beside_update": 4e-9,
        },
        post_s=1e-5,
    )  # fmt: skip
    model = Model(Machine(Side(1e10), Side(1e10), shared_bytes_per_s=1.5e10), parts, 10**6, 27.0)
    alone, crowded = model.fields("pipecg", 1, False), model.fields("pipecg", 2, True)
    assert alone["predicted_ns"] == pytest.approx(1e15 * (1 + 20 + 8 * 2 + 2 * 1.5 + 1) * 1e-9, rel=1e-6)
    assert crowded["predicted_ns"] == pytest.approx(1e15 / 2 * (2 + 24 + 2 * (8 * 2 + 2 * 1.5 + 1)) * 1e-9, rel=1e-6)
    ours = model.fields("offpath_pipecg", 1, False)
    assert ours["predicted_ns"] == pytest.approx(1e15 * (1 + 22 + 3) * 1e-9 + 1e4, rel=1e-6)
    # Where the service has more to do than the host, its pass counts.
    slow = Parts({**parts.s_per_row, "pass_beside_product": 50e-9}, 1e-5)
    slowly = Model(model.machine, slow, 10**6, 27.0).fields("offpath_pipecg", 1, False)
    assert slowly["predicted_ns"] == pytest.approx(1e15 * 50e-9 + 1e4, rel=1e-6)
    # 340 + 24 + 48 + 144 + 48 bytes and the like: docs/design/0009-krylov.md.
    assert 550 < alone["bytes_per_row"] < 700 and ours["bytes_per_row"] < alone["bytes_per_row"]
    assert ours["roofline_ns"] == pytest.approx(1e6 * ours["bytes_per_row"] / 1.5e10 * 1e9, rel=1e-6)


def test_leaders_that_are_no_numbers():
    result = offpath("bench", "krylov", *TINY, "--leaders", "all")
    assert result.returncode != 0 and "--leaders all" in result.stderr


@requires_root
def test_two_nodes_of_a_lab(tmp_path):
    result = bench(tmp_path, "--lab", "2", "--latency", "500us", "--grid", "6", "--phi", "0")
    assert result["meta"]["nodes"] == 2 and result["meta"]["latency"] == "500us"
    blocking = next(row for row in result["rows"] if row["solver"] == "cg")
    assert blocking["sum_ns"] > 2 * 500e3  # two sums, each at least one way
    settings = dict.fromkeys(row["setting"] for row in result["rows"])
    assert list(settings) == ["same ranks", "phi 0", "leaders 1", "preloaded", "preloaded too", "accuracy"]
    for row in result["rows"]:
        # Ours reduce by programs; PETSc's own few sums are blocking ones.
        assert row["setting"] == "preloaded too" or (row["offloaded_count"] > 0) == (row["setting"] == "preloaded")
    assert all(row["ranks"] == 2 and row["history_difference"] < 1e-6 for row in result["rows"])
