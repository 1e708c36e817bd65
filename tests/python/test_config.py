# SPDX-License-Identifier: BSD-3-Clause
"""The resolved configuration: environment in, one exact answer out."""

import json
import re
from pathlib import Path

import pytest
from conftest import ROOT, offpath, succeeded
from offpath.base import config, words

GOLDEN = Path(__file__).parent / "golden" / "config.json"
GIVEN = {
    "OFFPATH_POLICY": "ialltoall:512K-inf:dpu",
    "OFFPATH_SERVICE_SHARE": "1",
    "OFFPATH_LOG": "",
    "OFFPATH_UCX_RNDV_THRESH": "8k",
    "UCX_TLS": "tcp",
}


def test_resolved_configuration_is_the_golden_one():
    found = config.resolved(GIVEN)
    assert found == json.loads(GOLDEN.read_text())
    assert len({row["name"] for row in found}) == len(found), "a variable is described twice"


def test_names_nobody_reads_are_found():
    given = {"OFFPATH_POLICE": "x", "OFFPATH_UCX_TLS": "tcp", "OFFPATH_LAB_RUN": "1", "HOME": "/"}
    assert config.unknown(given) == ["OFFPATH_POLICE"]


def test_info_json_has_what_it_promises():
    found = json.loads(offpath("info", "--json", env=GIVEN).stdout)
    assert {"version", "prefix", "components", "settings", "unknown_variables", "mpis", "transports", "cores"} <= set(
        found
    )
    by_name = {row["name"]: row for row in found["settings"]}
    assert by_name["OFFPATH_POLICY"] == config.resolved(GIVEN)[2]


def test_info_shows_brackets_as_they_are():
    result = succeeded(offpath("info", env={"OFFPATH_POLICY_FILE": "/a/[/b]", "COLUMNS": "300"}))
    assert "/a/[/b]" in result.stdout and "HOST:PORT[/ARCH]" in result.stdout
    assert all(setting.name in result.stdout for setting in config.SETTINGS)


def test_info_env_can_be_read_by_a_shell():
    lines = offpath("info", "--env", env={"OFFPATH_SERVICE_SHARE": "1"}).stdout.splitlines()
    assert "OFFPATH_SERVICE_SHARE=1" in lines
    assert all(re.match(r"(# )?OFFPATH_[A-Z_]+=", line) for line in lines)


def test_info_names_the_mpi_of_a_program(programs, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    for program, mpi in ((programs / "hello_openmpi", "openmpi"), (programs / "hello_mpich", "mpich"), (script, None)):
        assert json.loads(offpath("info", "--json", str(program)).stdout)["program"]["mpi"] == mpi


LISTED = {setting.name for setting in (*config.SETTINGS, *config.INTERNAL)}


@pytest.mark.parametrize("folder", ["src", "frontends", "bench", "apps", "python/offpath"])
def test_every_variable_the_code_reads_is_listed(folder):
    for file in (ROOT / folder).rglob("*"):
        if file.suffix not in (".pyc", ".so") and file.is_file():
            for name in re.findall(r"""["'](OFFPATH_[A-Z_]+[A-Z])["'=]""", file.read_text(errors="replace")):
                assert name in LISTED or name.startswith("OFFPATH_UCX"), f"{file}: {name} is not in config.py"


@pytest.mark.parametrize(
    "document",
    sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("docs/performance/*.md"), *ROOT.glob("[CR]*.md")]),
)
def test_every_variable_in_the_documents_is_listed(document):
    """Or it is a name of the C API, of the build, or of the tests."""
    others = "".join(file.read_text() for file in [ROOT / "CMakeLists.txt", *ROOT.glob("include/offpath/*.h")])
    others += "".join(f" OFFPATH_{name}" for table in ("statuses", "remote_kinds") for name in words.numbers(table))
    others += "".join(f" OFFPATH_TASK_{name}" for name in words.numbers("task_accesses"))
    for name in set(re.findall(r"\bOFFPATH_[A-Z_]*[A-Z]\b(?![*_])", document.read_text())):
        known = name in LISTED or name.startswith(("OFFPATH_UCX", "OFFPATH_TEST")) or re.search(rf"\b{name}\b", others)
        assert known, f"{document.name}: nobody reads {name}"
