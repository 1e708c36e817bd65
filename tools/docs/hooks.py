# SPDX-License-Identifier: BSD-3-Clause
"""What MkDocs calls: adds the generated pages, orders everything, and makes links of the names of files."""

from __future__ import annotations

import re
import sys
from pathlib import Path, PurePosixPath

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

import pages  # noqa: E402
from sources import ROOT  # noqa: E402

SHIM = "https://unpkg.com/iframe-worker/shim"  # what the theme loads from the network, for pages opened from the disk

# Files of the repository that are pages, too.
COPIED = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "src/README.md": "sources.md",
    "python/README.md": "python-sources.md",
    "packaging/README.md": "packages.md",
}
STARTED = ("guide-start", "guide-mpi", "compatibility")  # where somebody who is new reads on
AT_WORK = ("packages", "guide-slurm", "job-scripts", "guide-dpu", "guide-telemetry", "guide-lab")
EXPLAINED = ("architecture", "sources", "python-sources")


def on_files(files: Files, config) -> Files:
    generated = pages.reference() | {"glossary.md": pages.glossary()}
    for source, path in COPIED.items():
        generated[path] = (ROOT / source).read_text()
    for path, text in generated.items():
        files.append(File.generated(config, path, content=text))
    for asset in ("offpath.js", "offpath.css"):
        files.append(File.generated(config, f"assets/{asset}", content=(Path(__file__).parent / asset).read_text()))
    config.nav = navigation([file.src_uri for file in files.documentation_pages()], list(generated))
    return files


def navigation(paths: list[str], generated: list[str]) -> list:
    """A guide or design note that is new has its place without being named here."""
    own = [path for path in paths if path not in generated]
    guides = sorted(path for path in own if path.startswith("guide-"))
    placed = {f"{name}.md" for name in (*STARTED, *AT_WORK, *EXPLAINED)} | {"guide-planner.md"}
    reference = [path for path in generated if path.startswith("reference/")]
    commands = [path for path in reference if path.startswith("reference/offpath-")]
    first = [f"{name}.md" for name in STARTED]
    notes = sorted(path for path in own if path.startswith("design/"))
    measured = sorted(path for path in own if path.startswith("performance/"))
    others = [path for path in reference if path not in (*commands, "reference/offpath.md")]
    return [
        {"Home": "index.md"},
        {"Getting started": first},
        {"Guides": [path for path in guides if path not in placed]},
        {"On a cluster": [f"{name}.md" for name in AT_WORK]},
        {"Planner": "guide-planner.md"},
        {"Performance": ["when-not.md", "performance.md", *measured]},
        {"How it works": [*(f"{name}.md" for name in EXPLAINED), {"Design notes": notes}]},
        {"Reference": ["reference/offpath.md", {"Commands": commands}, *others]},
        {"Help": ["troubleshooting.md", "faq.md", "security.md", "stability.md", "comparison.md", "glossary.md"]},
        {"Development": ["contributing.md", "changelog.md"]},
    ]  # fmt: skip


def on_nav(nav, config, files: Files):
    config.extra["sections"] = nav.items
    return nav


def on_post_build(config) -> None:
    """llms.txt: what language models read of a site first: every page, with its first sentence."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    for section in config.extra["sections"]:
        listed = [f"- [{page.title}]({page.url}){_about(page.markdown)}" for page in _below(section)]
        lines += [f"## {section.title}", "", *listed, ""]
    (Path(config.site_dir) / "llms.txt").write_text("\n".join(lines))


def _below(item) -> list:
    return [item] if item.is_page else [page for child in item.children for page in _below(child)]


def _about(markdown: str) -> str:
    """The first sentence that is neither code, list nor table, and no answer to a question."""
    paragraphs = re.split(r"\n\s*\n", markdown.split("\n###")[0])
    text = next((each for each in paragraphs if re.match(r"(?!```)[\w`]", each)), "")
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(text.split()))
    return ": " + re.split(r"(?<=\.)\s", text)[0] if text else ""


def on_page_markdown(markdown: str, page, config, files: Files) -> str:
    here = PurePosixPath(page.file.src_uri).parent
    known = {file.src_uri for file in files}  # pages, and what they show
    of = next((PurePosixPath(name).parent for name, path in COPIED.items() if path == page.file.src_uri), None)

    def target(path: str) -> str | None:
        """The page of a file of the repository."""
        if header := re.fullmatch(r"include/offpath/(\w+)\.h", path):
            path = pages.header_path(header[1])
        path = COPIED.get(path) or path.removeprefix("docs/")
        return _relative(path, here) if path in known else None

    def link(found: re.Match) -> str:
        path, _, part = found["path"].partition("#")
        root = of if of is not None else PurePosixPath("docs") / here
        reached = target(_normal(root / path)) or found["path"].partition("#")[0]
        return f"]({reached}{'#' + part if part else ''})"

    def name(found: re.Match) -> str:
        reached = target(found[0])
        return f"[{found[0]}]({reached})" if reached else found[0]

    parts = re.split(
        r"(^```.*?^```|^    .*?$|`[^`\n]*`|\[[^\]\n]*\]\([^)\n]*\))", markdown, flags=re.DOTALL | re.MULTILINE
    )
    for index, part in enumerate(parts):
        if index % 2 == 0:
            parts[index] = re.sub(r"\bdocs/[\w/-]+\.md\b", name, part)
        elif part.startswith("["):
            parts[index] = re.sub(r"\]\((?!https?:|#)(?P<path>[^)]+)\)", link, part)
    return "".join(parts)


def on_post_page(output: str, page, config) -> str:
    return output.replace(SHIM, _relative("assets/offpath.js", PurePosixPath(page.file.src_uri).parent))


def on_post_template(output: str, template_name: str, config) -> str:
    return output.replace(SHIM, "assets/offpath.js")


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _relative(path: str, here: PurePosixPath) -> str:
    return "../" * len(here.parts) + path
