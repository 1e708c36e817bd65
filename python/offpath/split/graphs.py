# SPDX-License-Identifier: BSD-3-Clause
"""networkx, loaded when something of it is used: whoever asks for help would wait half a second for it."""

import importlib.util
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as networkx
elif "networkx" in sys.modules:
    networkx = sys.modules["networkx"]
else:
    _spec = importlib.util.find_spec("networkx")
    if _spec is None:
        raise ModuleNotFoundError("No module named 'networkx'", name="networkx")
    _spec.loader = importlib.util.LazyLoader(_spec.loader)
    networkx = sys.modules["networkx"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(networkx)
