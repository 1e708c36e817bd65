# SPDX-License-Identifier: BSD-3-Clause
"""A store in a folder that all ranks see and their user alone can read."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from urllib.parse import quote

from offpath.api.failures import ArgumentError
from offpath.base import proc
from offpath.base.errors import UserError
from offpath.base.files import private_folder


class FolderStore:
    """folder: made if it is not there. of_one_node: what processes have left behind that live no more is not seen."""

    private = True

    def __init__(self, folder: str | Path, *, of_one_node: bool = False):
        try:
            self.folder = private_folder(Path(folder))
        except UserError as error:
            raise ArgumentError(str(error)) from None
        self._of_one_node = of_one_node

    def set(self, key: str, value: bytes) -> None:
        file = self._file(key)
        fresh = file.with_name(f".{file.name}.{os.getpid()}")
        fresh.write_bytes(f"{os.getpid()} {proc.began(os.getpid())}\n".encode() + value)
        fresh.replace(file)  # so that nobody sees a part of it

    def get(self, key: str) -> bytes:
        try:
            writer, _, value = self._file(key).read_bytes().partition(b"\n")
        except FileNotFoundError:
            raise KeyError(key) from None
        process, _, since = writer.decode().partition(" ")
        if self._of_one_node and proc.began(int(process)) != since:
            raise KeyError(key)
        return value

    def close(self, last: bool) -> None:
        """The last one removes what is there."""
        if last:
            with contextlib.suppress(OSError):
                shutil.rmtree(self.folder)

    def _file(self, key: str) -> Path:
        return self.folder / quote(key, safe="")
