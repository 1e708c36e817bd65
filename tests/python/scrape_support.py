# SPDX-License-Identifier: BSD-3-Clause
"""What `offpath run --metrics PORT` serves on a node of a lab, as Prometheus there would get it."""

import sys

from conftest import captured, succeeded
from offpath.lab import Lab
from prometheus_client import parser
from prometheus_client.samples import Sample

SCRIPT = """
import sys, time, urllib.request
from offpath.telemetry import metrics_token
begin_s = time.monotonic()
asked = urllib.request.Request(sys.argv[1], headers=metrics_token.header())
text = urllib.request.urlopen(asked).read().decode()
print(begin_s, time.monotonic())
print(text)
"""


def scrape(lab: Lab, node: str, url: str) -> tuple[list[float], dict[str, Sample]]:
    """On the node itself, where the address means it: when that began and ended, and a sample of each name."""
    words = lab.inside(node, [sys.executable, "-c", SCRIPT, url])
    result = succeeded(captured(words))
    times, _, text = result.stdout.partition("\n")
    families = parser.text_string_to_metric_families(text)
    samples = {sample.name.removeprefix("offpath_"): sample for family in families for sample in family.samples}
    return [float(time_s) for time_s in times.split()], samples
