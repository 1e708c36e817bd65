# SPDX-License-Identifier: BSD-3-Clause
"""`offpath run --metrics PORT`: the counters of this run over HTTP, for Prometheus to scrape while it goes on.

Each request looks at the run's service on this node once; between requests nothing happens. Who asks must send the
user's token (metrics_token.py): other users of the node reach the port, too.
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from http.server import ThreadingHTTPServer

from offpath.base.errors import UserError
from offpath.telemetry import jobs, metrics_token, prometheus
from offpath.telemetry.batch_job import BatchJob
from offpath.telemetry.observation import Snapshot

_PROVE_S = 2  # who has sent no token by then is let go
_MOST_UNPROVEN = 16  # with more the oldest goes


@contextlib.contextmanager
def serving(host: str, port: int, job: BatchJob) -> Iterator[str]:
    """Serves until the end; gives the URL. Raises UserError where it cannot."""
    handler = _handler(job, metrics_token.read_or_make())
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

        self._unproven: dict[socket.socket, float] = {}  # since when; the oldest first
        self._lock = threading.Lock()

    def process_request(self, request, client_address) -> None:
        with self._lock:
            self._unproven[request] = time.monotonic()
            self._end_strangers(time.monotonic() - _PROVE_S)
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        with self._lock:
            self._end_strangers(time.monotonic() - _PROVE_S)

    def note_proven(self, request: socket.socket) -> None:
        with self._lock:
            self._unproven.pop(request, None)

    def shutdown_request(self, request) -> None:
        self.note_proven(request)
        super().shutdown_request(request)

    def _end_strangers(self, before_s: float) -> None:
        """Under the lock. The thread of each ends by it."""
        for request, since_s in list(self._unproven.items()):
            if since_s <= before_s or len(self._unproven) > _MOST_UNPROVEN:
                del self._unproven[request]
                with contextlib.suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request, client_address) -> None:
        """A scraper that goes away is not this program's affair."""


def _handler(job: BatchJob, token: str) -> type:
    from prometheus_client import MetricsHandler

    class Handler(MetricsHandler):
        server_version, sys_version = "offpath", ""
        registry = prometheus.registry(lambda: prometheus.live(current(), socket.gethostname(), job))

        def do_GET(self) -> None:
            if not metrics_token.is_sent(self.headers.get("Authorization"), token):
                return self.send_error(401, explain="Send 'Authorization: Bearer TOKEN'.")
            self.server.note_proven(self.connection)
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
