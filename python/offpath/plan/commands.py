# SPDX-License-Identifier: BSD-3-Clause
"""`offpath plan`: would offloading help? From a profile, at scale, and for two benchmarks."""

from typer.core import TyperGroup

from offpath.base import commands
from offpath.plan import balance, minimd, predict, scale


class PlanGroup(TyperGroup):
    """`offpath plan FILE` is short for `offpath plan replay FILE`."""

    def parse_args(self, ctx, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = ["replay", *args]
        return super().parse_args(ctx, args)


app = commands.group("Say beforehand whether offloading pays: `offpath plan PROFILE`.", commands.FIRST, PlanGroup)
app.command("replay")(predict.replay_command)
app.command("scale")(scale.scale_command)
app.command("minimd")(minimd.plan_command)
app.command("balance")(balance.plan_command)
