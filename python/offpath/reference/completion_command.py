# SPDX-License-Identifier: BSD-3-Clause
"""`offpath completion`: what a shell needs to complete `offpath`'s commands and options."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import commands
from offpath.base.errors import UserError
from offpath.reference import completion, model

app = commands.alone()


@app.command(rich_help_panel=commands.PREPARE)
def completion_command(
    context: typer.Context,
    shell: Annotated[Optional[str], typer.Argument(help="bash or zsh. Default: that of SHELL.")] = None,
) -> None:
    """Print the completion of commands and options for bash or zsh.

    An installation has it in its folder share already; that of packages works without any setting.

    Examples:

        eval "$(offpath completion bash)"

        offpath completion zsh > ~/.zfunc/_offpath
    """
    wanted = shell or Path(os.environ.get("SHELL", "bash")).name
    if wanted not in completion.SHELLS:
        raise UserError(f"completion for '{wanted}' is not known. Give {' or '.join(completion.SHELLS)}.")
    print(completion.SHELLS[wanted](model.of_root(context.find_root().command)), end="")
