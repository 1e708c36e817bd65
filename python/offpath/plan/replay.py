# SPDX-License-Identifier: BSD-3-Clause
"""Runs a profile through the model: the same computations and calls, on the host and on the DPU."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from offpath.base.errors import UserError
from offpath.base.oldest import zip_equal
from offpath.plan import dealing, model
from offpath.trace import messages
from offpath.trace.parts import MESSAGES, ONE_SIDED
from offpath.trace.profile import Profile
from offpath.trace.record import Rank

# Costs of the service that a perfect DPU would not have; no speed is more to the model (src/model/machine.cpp).
IDEAL = {
    "own_cores": True, "speed": 1e3, "post_ns": 0, "operation_ns": 0, "step_ns": 0, "message_ns": 0,
    "send_ns_per_byte": 0, "receive_ns_per_byte": 0, "wake_ns": 0, "host_wake_ns": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Times:
    """Of one path, in ns."""

    total: float
    cores: float  # processor time of everybody, without waits
    services: float  # of it, that of the services
    sites: dict  # (file, offset): all ranks' time in those calls together
    offloaded: dict  # call site: whether its operations went to the DPU


@dataclass
class Scenario:
    """The profile as the model wants it. Call sites of acts: None for computation."""

    operations: list[dict]
    site_of_operation: list[tuple[str, int]]
    work: dealing.Dealt

    def run(self, machine: dict, node_of: Sequence[int], path: str, policy: Sequence[str] = ()) -> Times:
        operations = [{"path": path} | operation for operation in self.operations]
        request = {
            "do": "simulate", "machine": machine, "nodes": max(node_of) + 1, "node_of": list(node_of),
            "operations": operations, "ranks": self.work.ranks, "policy": list(policy),
            "sections": self.work.sections, "queues": self.work.queues,
        }  # fmt: skip
        answer = model.ask(request)
        sites: dict = {}
        for rank, ends in enumerate(answer["act_end_ns"]):
            before = 0.0
            for end, place in zip_equal(ends, self.work.sites_of(rank, answer["drawn"][rank])):
                if place is not None:
                    sites[place] = sites.get(place, 0.0) + end - before
                before = end
        offloaded: dict = {}
        for place, chosen in zip_equal(self.site_of_operation, answer["paths"]):
            offloaded[place] = offloaded.get(place, False) or chosen == model.DPU
        return Times(answer["end_ns"], answer["core_ns"], sum(answer["service_ns"]), sites, offloaded)

    def limit(self, machine: dict, node_of: Sequence[int]) -> float:
        """No offload beats it: everything on a DPU that costs nothing, on the same wires."""
        ideal = copy.deepcopy(machine)
        ideal["service"] |= IDEAL
        return self.run(ideal, node_of, model.DPU).total


def place_of(record: dict) -> tuple[str, int]:
    return record.get("file", "?"), record.get("offset", 0)


def scenario(profile: Profile) -> Scenario:
    """Finds which records of different ranks are one operation: the n-th on the same communicator; a send and the
    receive that it matches."""
    made = Scenario([], [], dealing.Dealt([], []))
    matched = messages.matched(profile.ranks)
    numbers: dict = {}
    ranks, sites, fetches = [], [], []
    for rank in profile.ranks:
        acts: list[list] = []
        places: list = []
        own: dict[int, int] = {}
        counts: dict = {}
        counters: dict[int, tuple] = {}  # of fetches whose number is not there yet: counter and epoch
        before = 0
        for record in rank.records:
            place = place_of(record)
            gap = record["begin_ns"] - before
            if gap > 0:
                acts.append(["compute", gap])
                places.append(None)
            before = max(before, record["end_ns"])
            if "op" in record:
                if record["kind"] in MESSAGES:
                    pair = matched.get((rank.number, record["op"]))
                    if pair is None:  # as it was: nobody knows what it waited for
                        acts.append(["idle", record["end_ns"] - record["begin_ns"]])
                        places.append(place)
                        continue
                    number = _message(made, numbers, pair, place)
                else:
                    number = _operation(made, numbers, counts, rank, record, place)
                own[record["op"]] = number
                if record["kind"] == "fetch":
                    counter = rank.teams[record["comm"]], record["root"]
                    counters[number] = counter, frozenset(counts.items())
                acts.append(["post", number])
                places.append(place)
                if record.get("blocking") and messages.waits(record):
                    acts.append(["wait", number])
                    places.append(place)
                continue
            waited = [own[each] for each in record.get("wait", []) if each in own]
            duration = record["end_ns"] - record["begin_ns"]
            if waited:
                acts.append(["wait", *waited])
                for number in counters.keys() & waited:
                    counter, epoch = counters.pop(number)
                    fetches.append(dealing.Fetch(rank.number, counter, epoch, len(acts), record["end_ns"]))
            else:
                acts.append(["test", min(duration, 1000)] if "test" in record else ["idle", duration])
            places.append(place)
        acts.append(["compute", max(0, rank.end_ns - before)])
        places.append(None)
        ranks.append(acts)
        sites.append(places)
    for number, operation in enumerate(made.operations):
        _complete(operation, number)
    movable = {number for number, operation in enumerate(made.operations) if operation["kind"] in ONE_SIDED}
    made.work = dealing.deal(ranks, sites, fetches, movable)
    return made


def _message(made: Scenario, numbers: dict, pair: messages.Pair, place) -> int:
    number = numbers.get(pair)
    if number is None:
        number = numbers[pair] = len(made.operations)
        operation = {"kind": "send", "bytes": pair.bytes, "members": [pair.sender, pair.receiver]}
        made.operations.append(operation | ({} if pair.may_go else {"path": model.HOST}))
        made.site_of_operation.append(place)
    return number


def _operation(made: Scenario, numbers: dict, counts: dict, rank: Rank, record: dict, place) -> int:
    members = rank.members[record["comm"]]
    kind = record["kind"]
    if kind in ONE_SIDED:
        target = members[record["root"]]
        made.operations.append({"kind": kind, "bytes": record["bytes"], "members": [rank.number, target]})
        made.site_of_operation.append(place)
        return len(made.operations) - 1
    key = rank.teams[record["comm"]]
    index = counts.get(key, 0)
    counts[key] = index + 1
    number = numbers.get((key, index))
    if number is None:
        number = numbers[key, index] = len(made.operations)
        made.operations.append(
            {"kind": kind, "bytes": 0, "members": members, "root": max(0, record["root"]), "rows": {}}
        )
        made.site_of_operation.append(place)
    operation = made.operations[number]
    if operation["kind"] != kind:
        raise UserError(
            f"the profile's ranks do not fit together "
            f"(operation {index} of a communicator is {operation['kind']} on one "
            f"rank and {kind} on rank {rank.number}). Record the run again."
        )
    operation["bytes"] = max(operation["bytes"], record["bytes"])
    if record.get("sent_bytes"):
        operation["rows"][members.index(rank.number)] = record["sent_bytes"]
    return number


def _complete(operation: dict, number: int) -> None:
    rows = operation.pop("rows", None)
    if rows:
        size = len(operation["members"])
        operation["sent_bytes"] = [rows.get(member, [0] * size) for member in range(size)]
