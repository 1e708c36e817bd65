# SPDX-License-Identifier: BSD-3-Clause
"""The token that whoever asks for metrics must send: one of each user for all runs, so Prometheus is told once."""

from __future__ import annotations

import contextlib
import hmac
from pathlib import Path

from offpath.base.errors import UserError
from offpath.base.files import new_secret
from offpath.base.paths import config_folder


def file() -> Path:
    return config_folder() / "metrics.token"


def read_or_make() -> str:
    """Raises UserError."""
    path = file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            new_secret(path)
        token = path.read_text().strip()
    except OSError as error:
        raise UserError(
            f"{path} cannot be used ({error.strerror}; it holds the token for metrics). Correct it."
        ) from None
    if len(token) < 16 or path.stat().st_mode & 0o077:
        raise UserError(f"{path} is no secret token (others could read metrics). Remove it; a new one is made.")
    return token


def header() -> dict[str, str]:
    """For a request."""
    return {"Authorization": f"Bearer {read_or_make()}"}


def is_sent(header: str | None, token: str) -> bool:
    return hmac.compare_digest((header or "").encode(), f"Bearer {token}".encode())
