# SPDX-License-Identifier: BSD-3-Clause
"""The policy on the command line's side: the product's own parser, the machine's file, what the ranks get."""

import json
import re

import pytest
from conftest import assert_one_line_error, offpath
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.launch import injection, policy_table
from offpath.launch.injection import OffloadOptions

FILE = """# tuned somewhere
ialltoall:nodes=2:host
ialltoall:1M-inf:nodes=2:dpu  # why
"""


@pytest.fixture(autouse=True)
def built():
    if not paths().policy_program.exists():
        pytest.skip(f"{paths().policy_program} is not built")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "policy"
    path.write_text(FILE)
    return path


def test_rows_know_where_they_come_from(file):
    table = policy_table.parse([(str(file), FILE), ("OFFPATH_POLICY", "ibcast:64K-1M:dpu=chain")])
    assert table.texts(str(file)) == ["ialltoall:0-inf:nodes=2:host", "ialltoall:1M-inf:nodes=2:dpu"]
    assert "ialltoallv:256K-inf:nodes=2:dpu" in table.texts("measured")
    assert table.rows[-1] == {
        "text": "ibcast:64K-1M:dpu=chain", "source": "OFFPATH_POLICY", "collective": "ibcast", "from_bytes": 65536,
        "to_bytes": 1 << 20, "nodes": 1, "path": "dpu", "algorithm": "chain",
    }  # fmt: skip
    assert len(table.collectives) == 26


def test_a_bad_row_is_named_with_its_file(file):
    file.write_text("ialltoall:dpu\nialltoal:dpu\n")
    with pytest.raises(UserError, match=r"policy: policy row 'ialltoal:dpu' names no known collective. Known: "):
        policy_table.for_ranks(None, str(file))


def test_a_damaged_file_is_named(file):
    file.write_bytes(b"ialltoall:dpu\nibcast:host\0\0")
    with pytest.raises(UserError, match="policy: policy row 'ibcast:host"):
        policy_table.for_ranks(None, str(file))


def test_the_file_goes_in_front_of_the_policy(file):
    tuned = "ialltoall:0-inf:nodes=2:host,ialltoall:1M-inf:nodes=2:dpu"
    assert policy_table.for_ranks(None, str(file)) == tuned
    assert policy_table.for_ranks("*:dpu", str(file)) == tuned + ",*:dpu"
    assert policy_table.for_ranks("*:dpu", "none") == "*:dpu"
    assert policy_table.for_ranks(None, "none") is None


def test_the_default_file_may_be_missing_a_chosen_one_not(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert policy_table.tuned_file(None) is None
    with pytest.raises(UserError, match="cannot be read"):
        policy_table.tuned_file(str(tmp_path / "policy"))
    (tmp_path / "offpath").mkdir()
    (tmp_path / "offpath" / "policy").write_text(FILE)
    assert policy_table.tuned_file(None) == tmp_path / "offpath" / "policy"
    assert policy_table.tuned_file("none") is None


def test_ranks_get_rows_and_never_the_name_of_a_file(file, programs, monkeypatch):
    (programs / "prefix" / "bin").mkdir(exist_ok=True)
    reader = programs / "prefix" / "bin" / "offpath-policy"
    if not reader.exists():
        reader.symlink_to(paths().policy_program)
    monkeypatch.setenv("OFFPATH_PREFIX", str(programs / "prefix"))
    given = {"OFFPATH_POLICY": "ibcast:dpu", "OFFPATH_POLICY_FILE": str(file)}
    chosen = injection.variables(OffloadOptions(blocking="bcast"), paths(), given)
    assert chosen["OFFPATH_POLICY"].endswith("ialltoall:1M-inf:nodes=2:dpu,ibcast:dpu")
    assert "OFFPATH_POLICY_FILE" not in chosen
    assert chosen["OFFPATH_MPI_BLOCKING"] == "bcast"
    chosen = injection.variables(OffloadOptions(policy="igather:dpu", policy_file="none"), paths(), given)
    assert chosen["OFFPATH_POLICY"] == "igather:dpu"
    # A measurement says all of it itself, and its policy still stands behind the file's rows
    options = injection.measured_run({"OFFPATH_POLICY": "*:dpu", "OFFPATH_POLICY_FILE": str(file)}, "stats", True)
    assert injection.variables(options, paths(), {})["OFFPATH_POLICY"].endswith("nodes=2:dpu,*:dpu")


def test_info_prints_a_policy_that_can_be_read_again(file, tmp_path):
    given = {"OFFPATH_POLICY": "*:1M-inf:host", "OFFPATH_POLICY_FILE": str(file)}
    printed = offpath("info", "--policy", env=given).stdout
    assert re.search(rf"^ialltoall:1M-inf:nodes=2:dpu +# {file}$", printed, re.MULTILINE)
    assert "ibcast: binomial, chain from 64 KiB (also: multicast, scatter_allgather)" in printed
    again = policy_table.parse([("again", printed)])
    found = json.loads(offpath("info", "--policy", "--json", env=given).stdout)
    assert again.texts("again") == [row["text"] for row in found["rows"]]
    assert [row["source"] for row in found["rows"]][-1] == "OFFPATH_POLICY"
    assert found["default_algorithms"]["ibarrier"] == [{"from_bytes": 0, "algorithm": "dissemination"}]


def test_bad_policies_are_one_line(file):
    result = offpath("info", "--policy", env={"OFFPATH_POLICY": "ialltoall:dpu=rings"})
    assert_one_line_error(result, "OFFPATH_POLICY: policy row", "Known: default, direct")
    result = offpath("info", "--policy", env={"OFFPATH_POLICY_FILE": "/no/such/file"})
    assert_one_line_error(result, "/no/such/file", "offpath tune")


def test_default_algorithms_are_those_of_the_code():
    defaults = {each.name: each.defaults for each in policy_table.parse().collectives}
    assert defaults["ibcast"] == ((0, "binomial"), (64 << 10, "chain"))
    assert defaults["ineighbor_alltoallv"] == ((0, "direct"),)
    assert defaults["window"] == ()
    for each in policy_table.parse().collectives:
        assert {name for _, name in each.defaults} <= set(each.algorithms), each.name
        assert bool(each.defaults) == (each.name not in ("window", "send", "write", "read")), each.name
