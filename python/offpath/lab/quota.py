# SPDX-License-Identifier: BSD-3-Clause
"""A slower DPU: a share of processor time for the processes of a node's DPU, by control group."""

from offpath.base.errors import UserError
from offpath.lab.inventory import QUOTA_ROOT
from offpath.lab.plan import Plan, namespace

PERIOD_US = 10_000
MIN_QUOTA_US = 1_000  # the kernel's own limit


def limits_us(cores: int, slowdown: float) -> tuple[int, int]:
    """(quota, period): a short period, so that a limited DPU is slow all the time and not asleep for long stretches."""
    quota = PERIOD_US * cores / slowdown
    stretch = max(1.0, MIN_QUOTA_US / quota)
    return round(quota * stretch), round(PERIOD_US * stretch)


def apply(plan: Plan) -> None:
    if plan.dpu_slowdown == 1.0:
        return
    if not (QUOTA_ROOT / "cpu.cfs_quota_us").exists() and not (QUOTA_ROOT / "cpu.shares").exists():
        raise UserError(
            f"A slow DPU needs the cgroup v1 cpu controller (there is none at {QUOTA_ROOT}). Leave --dpu-slowdown out."
        )
    for dpu in plan.dpus:
        group = QUOTA_ROOT / namespace(plan.name, dpu.place)
        group.mkdir()
        quota, period = limits_us(len(dpu.cores), plan.dpu_slowdown)
        (group / "cpu.cfs_period_us").write_text(str(period))
        (group / "cpu.cfs_quota_us").write_text(str(quota))
