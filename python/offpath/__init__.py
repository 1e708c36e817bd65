# SPDX-License-Identifier: BSD-3-Clause
"""Offpath: its command line, and the interface for Python programs (docs/guide-python.md).

What the interface offers is imported when it is first named, so the command line does not pay for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from offpath.base.version import __version__ as __version__

if TYPE_CHECKING:
    from offpath.api.failures import (
        AccessError,
        ArgumentError,
        CancelledError,
        DamagedError,
        DependenceError,
        LostError,
        MemoryFaultError,
        NoMemoryError,
        NoServiceError,
        NotStartedError,
        OffpathError,
        PeerLostError,
        ServiceLostError,
        ShortError,
        StateError,
        TaskError,
        TruncatedError,
        WaitTimeout,
        WindowRangeError,
    )
    from offpath.api.operation import Operation, Times
    from offpath.api.region import region
    from offpath.api.saving import Saving
    from offpath.api.session import Session, attach, empty, save, task
    from offpath.api.task import Task, Unchanged
    from offpath.api.team import Team
    from offpath.api.window import Window
    from offpath.rendezvous.folder_store import FolderStore
    from offpath.rendezvous.start import init
    from offpath.rendezvous.stores import Store
    from offpath.rendezvous.tcp_store import TcpStore

_FAILURES = (
    "AccessError", "ArgumentError", "CancelledError", "DamagedError", "DependenceError", "LostError",
    "MemoryFaultError", "NoMemoryError", "NoServiceError", "NotStartedError", "OffpathError", "PeerLostError",
    "ServiceLostError", "ShortError", "StateError", "TaskError", "TruncatedError", "WaitTimeout", "WindowRangeError",
)  # fmt: skip
_WHERE = {
    **dict.fromkeys(_FAILURES, "offpath.api.failures"),
    "Operation": "offpath.api.operation",
    "Times": "offpath.api.operation",
    "region": "offpath.api.region",
    "Saving": "offpath.api.saving",
    "Session": "offpath.api.session",
    "attach": "offpath.api.session",
    "empty": "offpath.api.session",
    "save": "offpath.api.session",
    "task": "offpath.api.session",
    "Task": "offpath.api.task",
    "Unchanged": "offpath.api.task",
    "Team": "offpath.api.team",
    "Window": "offpath.api.window",
    "init": "offpath.rendezvous.start",
    "Store": "offpath.rendezvous.stores",
    "FolderStore": "offpath.rendezvous.folder_store",
    "TcpStore": "offpath.rendezvous.tcp_store",
}
__all__ = [
    "AccessError", "ArgumentError", "CancelledError", "DamagedError", "DependenceError", "FolderStore", "LostError",
    "MemoryFaultError", "NoMemoryError", "NoServiceError", "NotStartedError", "OffpathError", "Operation",
    "PeerLostError", "Saving", "ServiceLostError", "Session", "ShortError", "StateError", "Store", "Task", "TaskError",
    "TcpStore", "Team", "Times", "TruncatedError", "Unchanged", "WaitTimeout", "Window", "WindowRangeError",
    "attach", "empty", "init", "region", "save", "task",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'offpath' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
