# SPDX-License-Identifier: BSD-3-Clause
"""What is in a wheel of Offpath that is not ours, and what it needs: a bill of materials (CycloneDX 1.6, JSON).

    tools/sbom.py VERSION COMMIT SECONDS    of that commit, which was made then (since 1970)

To standard output; nothing in it depends on the day. tools/release runs it, with a library that knows the format. What
is linked statically has the version of the Debian package from whose source it is built (tools/setup-portable).
"""

import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import tomllib
from cyclonedx.model import Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parents[1]
NAMESPACE = uuid.UUID("6f1ad1b5-6d5e-4c3c-8e0a-0f6f66706174")
IN_WHEEL, NEEDED, USED = "linked statically into the wheel", "needed", "used where it is"
# Debian's source package, a binary package by which its version is known, and the license.
STATIC = (
    ("lz4", "liblz4-dev", "BSD-2-Clause"), ("libzstd", "libzstd-dev", "BSD-3-Clause"),
    ("libdeflate", "libdeflate-dev", "MIT"), ("libsodium", "libsodium-dev", "ISC"),
    ("nlohmann-json3", "nlohmann-json3-dev", "MIT"),
)  # fmt: skip
LLVM = "Apache-2.0 WITH LLVM-exception"  # C++ library and run-time of the compiler
OF_SYSTEM = (("glibc", NEEDED), ("openmpi", USED), ("mpich", USED), ("ucx", USED), ("rdma-core", USED), ("petsc", USED),
             ("elfutils", USED), ("munge", USED))  # fmt: skip


def component(kind: str, name: str, version: str | None, how: str, licenses=()) -> Component:
    namespace = "debian" if kind == "deb" else None
    return Component(
        type=ComponentType.LIBRARY, name=name, version=version, purl=PackageURL(kind, namespace, name, version),
        bom_ref=f"{kind}:{name}", scope=ComponentScope.OPTIONAL if how == USED else ComponentScope.REQUIRED,
        licenses=licenses, properties=[Property(name="offpath:how", value=how)],
    )  # fmt: skip


def components() -> Iterator[Component]:
    for source, package, license in STATIC:
        asked = ["dpkg-query", "-W", "-f", "${Version}", package]
        version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        yield component("deb", source, version, IN_WHEEL, [DisjunctiveLicense(id=license)])
    zig = re.search(r"ziglang==([\d.]+)", (ROOT / "tools" / "setup-portable").read_text())[1]
    yield component("pypi", "ziglang", zig, IN_WHEEL, [LicenseExpression(LLVM)])
    project = tomllib.loads((ROOT / "python" / "pyproject.toml").read_text())["project"]
    pinned = dict(re.findall(r"^([\w-]+)==([\w.]+)", (ROOT / "python" / "requirements.txt").read_text(), re.MULTILINE))
    optional = [need for needs in project["optional-dependencies"].values() for need in needs]
    for needs, how in ((project["dependencies"], NEEDED), (optional, USED)):
        for name in (re.match(r"[\w-]+", need)[0] for need in needs):
            yield component("pypi", name, pinned.get(name), how)
    for name, how in OF_SYSTEM:
        yield component("deb", name, None, how)


def main() -> None:
    version, commit, seconds = sys.argv[1:]
    bom = Bom(components=components(), serial_number=uuid.uuid5(NAMESPACE, commit))
    bom.metadata.timestamp = datetime.fromtimestamp(int(seconds), timezone.utc)
    bom.metadata.component = own = Component(
        type=ComponentType.APPLICATION, name="offpath", version=version, bom_ref="offpath",
        licenses=[DisjunctiveLicense(id="BSD-3-Clause")], properties=[Property(name="offpath:commit", value=commit)],
    )  # fmt: skip
    bom.register_dependency(own, list(bom.components))
    text = JsonV1Dot6(bom).output_as_string(indent=1)
    if problem := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        sys.exit(f"sbom: this is no CycloneDX ({problem})")
    print(text)


main()
