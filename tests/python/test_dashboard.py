# SPDX-License-Identifier: BSD-3-Clause
"""The dashboard for Grafana: it asks for the metrics that there are, and a real Prometheus that scrapes a real job has
an answer to each of its queries."""

import contextlib
import http.server
import json
import math
import re
import shutil
import subprocess
import threading
import urllib.parse
import urllib.request

import pytest
from conftest import LIMIT_S, ROOT, eventually, succeeded
from offpath.telemetry import metrics_token, prometheus
from test_top import folder, late, running  # noqa: F401

FOLDER = ROOT / "packaging" / "grafana"
DASHBOARD = json.loads((FOLDER / "offpath.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = {f"{panel['title']}, {target['refId']}": target["expr"] for panel in PANELS for target in panel["targets"]}
AT_END = {metric for metric, *_ in prometheus.NAMES.values()} | {"collectives_total", "enabled"}
AT_END |= {"service_cpu_seconds_total"}
LIVE = {metric for metric, *_ in (*prometheus.LIVE_RANK.values(), *prometheus.LIVE_WORKER.values(), prometheus.OLDEST)}
KNOWN = {prometheus.PREFIX + metric for metric in AT_END | LIVE}


def test_queries_are_for_metrics_that_there_are():
    asked = {name for query in QUERIES.values() for name in re.findall(r"\boffpath_\w+", query)}
    assert asked == KNOWN
    for variable in DASHBOARD["templating"]["list"][1:]:
        metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"]).groups()
        assert metric in KNOWN and label == variable["name"] and label in ("job_name", "job_id")


def lost(given, kept, at=""):
    """Where a model did not keep what it was given."""
    if isinstance(given, dict) and isinstance(kept, dict):
        return [where for key in given for where in lost(given[key], kept.get(key), f"{at}.{key}")]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        return [where for pair in zip(given, kept, strict=True) for where in lost(*pair, at)]
    return [] if given == kept else [at]


def test_grafanas_own_model_knows_every_field():
    """It forgets what it does not know: a field that is misspelt, or of another version."""
    from grafana_foundation_sdk.cog import encoder, plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard

    plugins.register_default_plugins()
    kept = json.loads(encoder.JSONEncoder().encode(Dashboard.from_json(DASHBOARD)))
    # Grafana's page for variables writes "definition", which the model lacks.
    assert set(lost(DASHBOARD, kept)) == {".templating.list.definition"}
    assert lost({**DASHBOARD, "titel": "x"}, kept)[-1] == ".titel"


def test_every_panel_says_what_it_shows():
    for panel in PANELS:
        assert panel["title"] and panel["description"] and panel["fieldConfig"]["defaults"]["unit"], panel["title"]


def test_panels_lie_side_by_side():
    places = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & places, panel["title"]
        places |= cells
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids) and all(panel["title"] for panel in DASHBOARD["panels"])


@contextlib.contextmanager
def served(file):
    """A file over HTTP, in place of the node exporter that would."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(file.read_bytes() if file.exists() else b"")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()


@contextlib.contextmanager
def scraping(tmp_path, targets):
    """Prometheus with the configuration that is installed, but for the targets; gives a function that asks it."""
    for name in ("prometheus", "promtool"):
        if shutil.which(name) is None:
            pytest.skip(f"there is no {name} (queries are its). Install Debian's prometheus")
    config = tmp_path / "prometheus.yml"
    text = (
        (FOLDER / "prometheus.yml")
        .read_text()
        .replace("/home/USER/.config/offpath/metrics.token", str(metrics_token.file()))
    )
    for default, target in zip(("127.0.0.1:9400", "127.0.0.1:9100"), targets, strict=True):
        assert default in text
        text = text.replace(default, target)
    often = "scrape_interval: 200ms"
    config.write_text(text.replace("scrape_interval: 5s", often) + f"global: {{{often}}}\n")
    subprocess.run(["promtool", "check", "config", config], check=True, capture_output=True)
    log = tmp_path / "prometheus.log"
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}",
               "--web.listen-address=127.0.0.1:0", "--log.level=info"]  # fmt: skip
    with log.open("w") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        found = eventually(lambda: re.search(r'msg="Listening on" address=(\S+)', log.read_text()))

        def ask(query):
            url = f"http://{found[1]}/api/v1/query?" + urllib.parse.urlencode({"query": query})
            with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(url, timeout=LIMIT_S) as answer:
                return json.load(answer)["data"]["result"]

        yield ask
    finally:
        server.terminate()
        server.wait(LIMIT_S)


def filled_in(query):
    """As Grafana asks when everything is chosen."""
    return query.replace("$__rate_interval", "20s").replace("$job_name", ".*").replace("$job_id", ".*")


@pytest.mark.machine
@pytest.mark.parametrize("late", ["mpich"], indirect=True)
def test_prometheus_has_an_answer_to_every_query(late, folder, tmp_path):  # noqa: F811
    ended = tmp_path / "ended.prom"
    with running(late, folder, "--metrics", str(ended)) as (job, post):
        post.touch()
        folder.parent.joinpath("end").touch()
        job.wait(LIMIT_S)
    (folder.parent / "post").unlink()
    (folder.parent / "end").unlink()
    with contextlib.ExitStack() as stack:
        job, post = stack.enter_context(running(late, folder, "--metrics", "0", "--job-name", "ocean"))
        live = re.search(r"http://(\S+)/metrics", job.stderr.readline())[1]
        post.touch()
        ask = stack.enter_context(scraping(tmp_path, (live, stack.enter_context(served(ended)))))
        eventually(lambda: ask("sum(rate(offpath_operations_done_total[20s])) > 0"))
        asked = urllib.request.Request(f"http://{live}/metrics", headers=metrics_token.header())
        for source in (urllib.request.urlopen(asked, timeout=LIMIT_S).read(), ended.read_bytes()):
            succeeded(subprocess.run(["promtool", "check", "metrics"], input=source, capture_output=True))
        without = {title for title, query in QUERIES.items() if not numbers(eventually_asked(ask, query))}
        assert not without
        assert numbers(ask(QUERIES["Ranks, A"].replace("$job_name", "ocean").replace("$job_id", ".*"))) == [2]


def eventually_asked(ask, query):
    with contextlib.suppress(AssertionError):
        return eventually(lambda: numbers(ask(filled_in(query))) and ask(filled_in(query)))
    return []


def numbers(result):
    found = [float(each["value"][1]) for each in result or []]
    return [value for value in found if not math.isnan(value)]
