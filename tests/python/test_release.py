# SPDX-License-Identifier: BSD-3-Clause
"""`make release`: an archive that is the same each time and can be built from, its sums, and what is in a wheel."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import tomllib
from conftest import ROOT, captured
from offpath import __version__

NAME = f"offpath-{__version__}"


def clone(folder):
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    return folder


def release(tree, **options):
    return captured([tree / "tools" / "release"], **options)


def test_what_no_commit_has_is_refused(tmp_path):
    tree = clone(tmp_path / "tree")
    (tree / "more").write_text("")
    done = release(tree, check=False)
    assert done.returncode == 1 and done.stdout == "" and not (tree / "build").exists()
    assert done.stderr.startswith("release: there are changes that no commit has") and done.stderr.count("\n") == 1
    shutil.rmtree(tree / ".git")
    alone = os.environ | {"GIT_CEILING_DIRECTORIES": str(tmp_path)}
    assert "this is no clone" in release(tree, check=False, env=alone).stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of a release, made in a clone."""
    tree = clone(tmp_path_factory.mktemp("release") / "tree")
    release(tree, check=True)
    return tree / "build" / "archive"


@pytest.mark.nightly
def test_it_is_the_same_each_time(made, tmp_path):
    assert sorted(file.name for file in made.iterdir()) == ["SHA256SUMS", f"{NAME}.cdx.json", f"{NAME}.tar.gz"]
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=made, check=True)
    other = clone(tmp_path / "elsewhere")
    release(other, check=True, env=os.environ | {"TZ": "Asia/Tokyo", "LC_ALL": "C"})
    assert (other / "build" / "archive" / "SHA256SUMS").read_text() == (made / "SHA256SUMS").read_text()


@pytest.mark.nightly
def test_all_that_is_in_a_wheel_or_needed_is_named(made):
    bill = json.loads((made / f"{NAME}.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX" and bill["metadata"]["component"]["version"] == __version__
    by_how = {}
    for each in bill["components"]:
        [how] = [one["value"] for one in each["properties"] if one["name"] == "offpath:how"]
        by_how.setdefault(how, {})[each["name"]] = each
    setup = (ROOT / "tools" / "setup-portable").read_text()
    [libraries] = re.findall(r"^portable_libraries=\((.*)\)", setup, re.MULTILINE)
    static = by_how["linked statically into the wheel"]
    assert set(static) == {*libraries.split(), "nlohmann-json3", "ziglang"}
    assert all(each["version"] and each["licenses"] for each in static.values())
    licensed = set(re.findall(r"LICENSE\.([a-z]\w+)", setup))  # in the wheel
    assert len(licensed) == len(static), licensed  # compiler_rt stands for all that the compiler brings
    project = tomllib.loads((ROOT / "python" / "pyproject.toml").read_text())["project"]
    assert {re.match(r"[\w-]+", need)[0] for need in project["dependencies"]} <= set(by_how["needed"])
    pinned = dict(re.findall(r"^([\w-]+)==([\w.]+)", (ROOT / "python" / "requirements.txt").read_text(), re.MULTILINE))
    found = {name: each.get("version") for each_how in by_how.values() for name, each in each_how.items()}
    assert {name: found[name] for name in pinned} == pinned


@pytest.mark.nightly
def test_it_can_be_built_from(made, tmp_path):
    """Without a clone, and tried by the self test."""
    subprocess.run(["tar", "-xf", made / f"{NAME}.tar.gz", "-C", tmp_path], check=True)
    tree = tmp_path / NAME
    folders = {"CCACHE_BASEDIR": str(tmp_path), "CCACHE_NOHASHDIR": "1", "PYTHONPATH": str(tree / "python")}
    environment = {name: value for name, value in os.environ.items() if name != "OFFPATH_PREFIX"} | folders

    def run(*words):
        done = captured(words, cwd=tree, env=environment, timeout=None)
        assert done.returncode == 0, (words, done.stdout[-3000:], done.stderr[-3000:])
        return done.stdout

    run("cmake", "--preset", "release")
    programs = ["offpathd", "offpath_mpi", "offpath_mpi_mpich", "collectives_mpich", "faults_mpich"]
    run("cmake", "--build", "--preset", "release", "-j2", "--target", *programs)
    said = json.loads(run(sys.executable, "-m", "offpath", "selftest", "--json", "--mpi", "mpich"))
    assert said["works"] and said["offpath"] == __version__, said
