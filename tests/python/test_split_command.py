# SPDX-License-Identifier: BSD-3-Clause
"""`offpath split`: what it prints, the files it writes, and one line for bad input."""

import json
import shutil
import xml.etree.ElementTree as tree

import pytest
from conftest import assert_one_line_error, offpath, succeeded
from offpath.base.errors import UserError
from offpath.plan import machine
from offpath.split import describe, load, variants
from offpath.split.costs import read_machine
from split_support import program_of

WEIGHTS = """reduction_s = 2e-5
shared_bytes_per_s = 2e10
[host]
bytes_per_s = 1.2e10
[host.seconds_per_row]
matvec = 3e-8
[dpu]
bytes_per_s = 1e10
"""


def test_both_programs_are_printed():
    result = succeeded(offpath("split", env={"COLUMNS": "160"}))
    for words in ("m = B w  -> m", "<- m", "sum gamma, delta over all ranks", "vector w", "host -> dpu", "Split saves"):
        assert words in result.stdout


def test_variants_are_listed():
    lines = offpath("split", "--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == variants()


@pytest.mark.parametrize("name", variants())
def test_the_description_holds_the_list(name):
    oplist = load(name)
    program, costs = program_of(oplist, rows=250_000)
    found = json.loads(json.dumps(describe(program, costs)))
    assert (found["format"], found["version"], found["variant"]) == ("offpath-split", 1, name)
    steps = found["sides"]["host"] + found["sides"]["dpu"]
    operations = [each for step in steps if step["step"] == "run" for each in step["operations"]]
    assert sorted(each.get("target", "") for each in operations) == sorted(
        each.target or "" for each in oplist.iteration
    )
    assert {name for step in steps for name in step.get("sends", [])} == {each["name"] for each in found["exchanges"]}
    received = {step["name"] for step in steps if step["step"] == "receive"}
    assert received == {each["name"] for each in found["exchanges"]}
    assert found["prediction"]["rows"] == 250_000
    written = {each["target"] for each in found["setup"]}
    assert set(found["begin"]["dpu"]) <= written | {"b", "x"}


def test_the_description_of_pipecg():
    found = json.loads(offpath("split", "--json", "-", "--ranks", "4", "--nnz-per-row", "7").stdout)
    assert found["prediction"]["rows"] == 250_000
    assert found["prediction"]["crossing_bytes"] == {"host": 2 * 250_000 * 8, "dpu": 3 * 8}  # m, w; alpha, beta, gamma
    updates = {
        each["target"]: each for step in found["sides"]["dpu"] if step["step"] == "run" for each in step["operations"]
    }
    assert updates["u"]["terms"] == [
        {"number": 1.0, "scalar": None, "vector": "u"}, {"number": -1.0, "scalar": "alpha", "vector": "q"},
    ]  # fmt: skip
    assert updates["alpha"]["postfix"] == ["gamma", "delta", "beta", "gamma", "*", "alpha", "/", "-", "/"]
    assert found["sides"]["dpu"][-1] == {"step": "reduce", "names": ["gamma", "delta"], "sends": ["gamma"]}
    assert {
        "name": "w",
        "kind": "vector",
        "from": "host",
        "to": "dpu",
        "carried": False,
        "buffers": 2,
        "waits": False,
    } in (found["exchanges"])
    assert found["end"] == ["x"]


@pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz is not installed")
def test_the_graph_is_drawn(tmp_path):
    file = tmp_path / "graph.svg"
    assert offpath("split", "groppcg", "--svg", str(file)).returncode == 0
    root = tree.parse(file).getroot()
    assert root.tag.endswith("svg")
    words = " ".join(root.itertext())
    assert "q = B s" in words and "w = A u" in words
    assert "stroke-dasharray" in file.read_text() and "#c0392b" in file.read_text()


def test_without_graphviz(tmp_path):
    for tool in ("readlink", "dirname"):  # what the launcher itself needs
        (tmp_path / tool).symlink_to(shutil.which(tool))
    result = offpath("split", "--svg", str(tmp_path / "x.svg"), env={"PATH": str(tmp_path)})
    assert_one_line_error(result, "dot is not installed", "graphviz")


def test_weights_change_the_prediction(tmp_path):
    file = tmp_path / "weights.toml"
    file.write_text(WEIGHTS)
    found = json.loads(offpath("split", "--weights", str(file), "--json", "-").stdout)
    assert found["prediction"]["busy_s"]["host"] == pytest.approx(1e6 * (2 * 3e-8 + 40 / 1.2e10), rel=0.2)
    file = tmp_path / "machine.json"
    planned = machine.default() | {"cores": {"shared_copy_bytes_per_ns": {"median": 5}}}
    file.write_text(json.dumps(planned))
    found = json.loads(offpath("split", "--weights", str(file), "--json", "-").stdout)
    traffic = 1e6 * sum(found["prediction"]["bytes_per_row"].values())
    assert found["prediction"]["memory_bound"]  # two cores get no more than one; each byte is read and written
    assert found["prediction"]["seconds_per_iteration"]["split"] == pytest.approx(traffic / 20e9)
    result = offpath("split", "--weights", "measured", "--rows", "1000")
    assert result.returncode == 0 and "Split saves" in result.stdout


@pytest.mark.parametrize(
    "text, words",
    [
        ("x = [", ["cannot be read as weights"]),
        ("bandwidth = 3", ["'bandwidth' is not a weight", "reduction_s"]),
        ("reduction_s = -1", ["reduction_s is -1"]),
        ("reduction_s = nan", ["reduction_s is nan"]),
        ("[host]\nbytes_per_s = 0", ["host.bytes_per_s is 0"]),
        ("[host]\nspeed = 1", ["[host] has what nobody reads"]),
        ("[dpu.seconds_per_row]\nupdate = '1'", ["dpu.seconds_per_row.update is '1'"]),
        ("host = 3", ["[host] has what nobody reads"]),
    ],
)
def test_bad_weights_are_one_line(tmp_path, text, words):
    file = tmp_path / "weights.toml"
    file.write_text(text)
    with pytest.raises(UserError) as error:
        read_machine(file)
    assert all(word in str(error.value) for word in (str(file), *words)) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["nosuch"], ["'nosuch'", "pipecg"]),
        (["--rows", "0"], ["--rows", "offpath split --help"]),
        (["--ranks", "0"], ["--ranks"]),
        (["--reduction-us=-1"], ["--reduction-us"]),
        (["--weights", "/no/such/file"], ["/no/such/file"]),
        (["--json", "/proc/nowhere/x.json"], ["/proc/nowhere/x.json", "Give another file"]),
    ],
)
def test_bad_input_is_one_line(arguments, words):
    assert_one_line_error(offpath("split", *arguments), *words)


def test_a_bad_list_is_named_with_its_line(tmp_path):
    file = tmp_path / "bad.txt"
    file.write_text("matrix A\nvectors r\nsetup\n r = A x\niterate\n r = A r\n x = x + r\n")
    assert_one_line_error(offpath("split", str(file)), f"{file}:7: no preconditioner", "Add one like m = B w")
