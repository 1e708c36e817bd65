# SPDX-License-Identifier: BSD-3-Clause
"""What is made from the code: the documentation site, man pages, completion. And that troubleshooting is about messages
that there are."""

import ast
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT, assert_one_line_error, captured, offpath, succeeded
from offpath.base import config
from offpath.cli.commands import app
from offpath.reference import model

sys.path.insert(0, str(ROOT / "tools" / "docs"))
import messages  # noqa: E402
import pages  # noqa: E402
import sources  # noqa: E402


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Built strictly: a link or an anchor that leads nowhere fails."""
    folder = tmp_path_factory.mktemp("site")
    succeeded(captured([ROOT / "tools" / "docs" / "build", folder], timeout=None))
    return folder


def test_the_site_loads_nothing_from_the_network(site):
    for file in site.rglob("*.html"):
        text = re.sub(r"<a [^>]*>", "", file.read_text())
        assert not re.search(r"""(src|href)=["']?https?:""", text), file


def test_every_page_is_in_the_list_for_language_models(site):
    listed = re.findall(r"^- \[.+?\]\((.+?)\)(.*)$", (site / "llms.txt").read_text(), re.MULTILINE)
    found = {str(file.relative_to(site)) for file in site.rglob("*.html")} - {"404.html"}
    assert {name for name, _ in listed} == found and len(listed) == len(found)
    assert dict(listed)["guide-mpi.html"].startswith(": `offpath run` preloads")


def test_the_site_describes_every_command_and_variable(site):
    pages = {file.name: file.read_text() for file in (site / "reference").glob("*.html")}
    for command in model.command_line(app).all():
        if len(command.path) > 1:
            text = pages[f"offpath-{command.path[1]}.html"]
            assert command.name in text
            for option in command.options:
                assert all(f"<code>{name}</code>" in text for name in option.names), (command.name, option)
    assert all(setting.name in pages["variables.html"] for setting in config.SETTINGS)
    assert "--munge" in pages["programs.html"] and "offpath_session_attach" in pages["c-api.html"]
    assert not (missing := {"index.html", "faq.html", "glossary.html"} - {file.name for file in site.glob("*.html")}), (
        missing
    )


def test_paragraphs_and_labels_of_the_headers_stay_apart():
    """A table in a comment keeps its lines; text before it, its paragraphs."""
    windows, tasks = "Order      Operations may take", "A task is an operation of its session"
    text = pages.header_page(ROOT / "include" / "offpath" / "offpath.h")
    assert re.search(rf"^```text\nCounters   Per window[^`]*^{windows}[^`]*^```$", text, re.MULTILINE)
    assert re.search(rf"\n\n{tasks}[^\n]*\n\n```text\nMemory   Ranges", text)


@pytest.mark.nightly
def test_a_broken_link_fails(tmp_path):
    """In a copy of what the site is made of."""
    for folder in ("docs", "tools", "include", "python"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in "src frontends bench apps .venv README.md CONTRIBUTING.md CHANGELOG.md CMakeLists.txt".split():
        (tmp_path / name).symlink_to(ROOT / name)
    guide = tmp_path / "docs" / "guide-lab.md"
    guide.write_text(guide.read_text() + "\n[nowhere](guide-start.md#no-such-place)\n")
    result = captured([tmp_path / "tools" / "docs" / "build"], timeout=None)
    assert result.returncode != 0 and "no-such-place" in result.stdout + result.stderr


def test_messages_read_as_they_should():
    found = messages.all_messages()
    assert len(found) > 400
    fabric = next(each for each in found if each.problem.startswith("there is no fabric"))
    assert fabric.why == "services need one to reach each other" and fabric.cure.startswith("Leave OFFPATH_FABRIC out")


def corpus() -> str:
    """All strings of the sources, as they are joined when they are said."""
    native = [each.text for file in sources.files("src", "frontends") for each in sources.literals(file)]
    spoken = []
    for file in (ROOT / "python" / "offpath").rglob("*.py"):
        spoken += [messages._text(node) for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.expr)]
    return "\n".join(messages.FORMAT.sub(sources.GAP, text) for text in native + spoken)


def test_troubleshooting_is_about_messages_that_there_are():
    text = (ROOT / "docs" / "troubleshooting.md").read_text()
    symptoms = re.findall(r"^### `(.*)`$", text, re.MULTILINE)
    said = corpus()
    assert len(symptoms) >= 20
    for symptom in symptoms:
        for part in filter(None, (part.strip(" ()':") for part in symptom.split(sources.GAP))):
            assert part in said, f"nothing says '{part}' (of '{symptom}')"
    for section in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        assert "**Why.**" in section and "**Do.**" in section, section


def test_man_pages_are_clean(tmp_path):
    subprocess.run([sys.executable, ROOT / "tools" / "docs" / "install_pages.py", tmp_path], check=True)
    pages = sorted((tmp_path / "share" / "man" / "man1").glob("*.1"))
    names = {page.name for page in pages}
    assert {"offpath.1", "offpath-run.1", "offpath-lab.1", "offpathd.1", "offpath-cc.1", "offpath-c++.1"} <= names
    succeeded(captured(["mandoc", "-Tlint", "-Wwarning", *pages]))
    shown = captured(["mandoc", "-Tascii", tmp_path / "share/man/man1/offpath-run.1"])
    assert "--policy-file" in re.sub(".\b", "", shown.stdout)
    text = (tmp_path / "share" / "man" / "man1" / "offpath.1").read_text()
    assert all(setting.name in text for setting in config.SETTINGS)


@pytest.fixture(scope="module")
def bash_completion(tmp_path_factory):
    file = tmp_path_factory.mktemp("bash") / "offpath"
    file.write_text(offpath("completion", "bash").stdout)
    return file


COMPLETE = """\
source {file}
COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_offpath
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    "words, expected",
    [
        ("offpath ru", {"run"}),
        ("offpath lab u", {"up"}),
        ("offpath lab up --nod", {"--nodes"}),
        ("offpath lab run --mpi ''", {"openmpi", "mpich"}),
        ("offpath run --cores 2,3 --sh", {"--share"}),
        ("offpath run --share -- mpir", set()),
    ],
)
def test_bash_completes(words, expected, bash_completion):
    script = COMPLETE.format(file=bash_completion, words=words)
    result = captured(["bash", "-c", script])
    assert set(result.stdout.split()) == expected, result.stderr


def test_zsh_takes_its_completion(tmp_path):
    """As zsh finds it: in a folder of its functions, called while a command line is completed."""
    if not shutil.which("zsh"):
        pytest.skip("zsh is not installed (make setup installs it)")
    (tmp_path / "_offpath").write_text(offpath("completion", "zsh").stdout)
    script = (
        f"fpath=({tmp_path} $fpath); autoload -Uz compinit; compinit -u -D; "
        "autoload +X _offpath && echo ${_comps[offpath]}"
    )
    environment = os.environ | {"HOME": str(tmp_path)}
    result = captured(["zsh", "-f", "-c", script], env=environment)
    assert result.stdout.split() == ["_offpath"], result.stderr
    assert subprocess.run(["zsh", "-n", tmp_path / "_offpath"]).returncode == 0


def test_a_wheel_has_pages_and_completion(tmp_path):
    shutil.copytree(
        ROOT / "python", tmp_path / "python", ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    )
    shutil.copytree(ROOT / "include", tmp_path / "include")  # whose tables the package has, too
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    succeeded(captured([*command, "-w", tmp_path, tmp_path / "python"], timeout=None))
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    for wanted in (
        "share/man/man1/offpath-run.1",
        "share/bash-completion/completions/offpath",
        "_offpath",
        "reference/man.py",
        "offpath/_words/algorithms.def",
    ):
        assert any(name.endswith(wanted) for name in names), wanted


def test_other_shells_are_refused():
    assert_one_line_error(offpath("completion", "fish"), "bash or zsh", status=2)


def job_scripts() -> list[str]:
    return re.findall(
        r"^```sh\n(.*?)^```", (Path(ROOT) / "docs" / "job-scripts.md").read_text(), re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize("script", job_scripts())
def test_job_scripts_are_scripts_and_their_options_are_known(script):
    assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0
    options = {
        each.path[-1]: {name for option in each.options for name in option.names}
        for each in model.command_line(app).commands
    }
    lines = re.findall(r"^offpath (\w+) (.*?)(?=-- |$)", re.sub('"srun .*?"', "SRUN", script), re.MULTILINE)
    assert lines
    for name, words in lines:
        assert set(re.findall(r"(?<!\S)--[\w-]+", words)) <= options[name], words
