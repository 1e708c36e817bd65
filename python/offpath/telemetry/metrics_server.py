# SPDX-License-Identifier: BSD-3-Clause
"""`offpath run --metrics PORT`: the counters of this run over HTTP, for Prometheus to scrape while it goes on.

Each request looks at the run's service on this node once; between requests nothing happens.
"""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer

from offpath.errors import UserError
from offpath.telemetry import jobs, prometheus
from offpath.telemetry.batch_job import BatchJob
from offpath.telemetry.observation import Snapshot

REQUEST_S = 10  # who says nothing for so long is let go


@contextlib.contextmanager
def serving(host: str, port: int, job: BatchJob) -> Iterator[str]:
    """Serves until the end; gives the URL. Raises UserError where it cannot."""
    handler = _handler(job)
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        server = _Server(family, host, port, handler)
    except OSError as error:
        raise UserError(f"cannot serve metrics on {host}:{port} ({error.strerror}). Choose another port.") from None
    shown = f"[{host}]" if ":" in host else host
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"http://{shown}:{server.server_address[1]}/metrics"
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, family: int, host: str, port: int, handler: type):
        self.address_family = family
        super().__init__((host, port), handler)

    def handle_error(self, request, client_address) -> None:
        """A scraper that goes away is not this program's affair."""


def _handler(job: BatchJob) -> type:
    from prometheus_client import MetricsHandler

    class Handler(MetricsHandler):
        timeout = REQUEST_S
        server_version = "offpath"
        registry = prometheus.registry(lambda: prometheus.live(current(), socket.gethostname(), job))

        def do_GET(self) -> None:
            if self.path.partition("?")[0] not in ("/", "/metrics"):
                return self.send_error(404, explain="The metrics are at /metrics.")
            super().do_GET()

    return Handler


def current() -> list[Snapshot]:
    """What the services of the processes that we started publish now; before the first rank attached: nothing."""
    try:
        with jobs.watched(str(os.getpid())) as found:
            return [job.last for job in found]
    except UserError:
        return []
