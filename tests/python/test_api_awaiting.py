# SPDX-License-Identifier: BSD-3-Clause
"""Operations in loops of events: awaited by asyncio, watched by descriptors."""

import asyncio
import os
import secrets
import select
import threading

import numpy as np
import offpath
import pytest
from api_support import environment  # noqa: F401


@pytest.fixture
def pair(environment, monkeypatch):  # noqa: F811
    """Two members of a team, in one process."""
    for name in ("OFFPATH_SERVICE_SHARE", "OFFPATH_RUNTIME_DIR"):
        monkeypatch.setenv(name, environment[name])
    token, team = secrets.token_bytes(32), secrets.token_bytes(16)
    sessions = [offpath.attach(token, node_only=True) for _ in range(2)]
    addresses = [session.address for session in sessions]
    yield [offpath.Team(session, team, rank, addresses) for rank, session in enumerate(sessions)]
    for session in sessions:
        session.close()


async def turns_until(task):
    """How often others get their turn before it is over."""
    turns = 0
    while not task.done():
        turns += 1
        await asyncio.sleep(0.001)
    return turns


def test_an_operation_is_awaited_while_others_run(pair):
    first, second = pair

    async def program():
        one = asyncio.ensure_future(first.iallreduce(np.ones(1000)))
        asyncio.get_running_loop().call_later(0.05, lambda: late.append(second.iallreduce(np.full(1000, 2.0))))
        turns = await turns_until(one)
        both = await asyncio.gather(late[0], late[0], one)
        assert all((each == 3).all() for each in both)
        assert await late[0] is late[0].result  # over, and awaited once more
        return turns

    late = []
    assert asyncio.run(program()) > 3


def test_many_are_awaited_at_once(pair):
    async def program():
        operations = [team.iallreduce(np.full(10, float(at))) for at in range(200) for team in pair]
        sums = await asyncio.gather(*operations)
        assert [each[0] for each in sums] == [2.0 * at for at in range(200) for _ in pair]

    before = len(os.listdir("/proc/self/fd"))
    asyncio.run(program())
    assert len(os.listdir("/proc/self/fd")) == before


def test_two_await_one_and_one_of_them_is_cancelled(pair):
    async def program():
        operation = pair[0].ibarrier()
        stays, goes = (asyncio.ensure_future(operation) for _ in range(2))
        await asyncio.sleep(0.01)
        goes.cancel()
        with pytest.raises(asyncio.CancelledError):
            await goes
        assert not operation.done
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(operation, 0.01)
        pair[1].ibarrier()
        assert await stays is None

    asyncio.run(program())


def test_what_is_awaited_too_long_or_fails_raises(pair):
    async def program():
        pair[0].timeout = 0.02
        with pytest.raises(offpath.WaitTimeout, match="not done after 0.02 s: barrier"):
            await pair[0].ibarrier()
        pair[0].timeout = None
        lasting = asyncio.ensure_future(pair[0].ibarrier())
        await asyncio.sleep(0.01)
        pair[0].session.close()
        with pytest.raises(offpath.StateError, match="the session is closed"):
            await lasting

    asyncio.run(program())


def test_a_descriptor_can_be_read_once_it_is_over(pair):
    operation = pair[0].iallreduce(np.ones(10))
    descriptor = operation.descriptor()
    try:
        assert select.select([descriptor], [], [], 0.02)[0] == []
        threading.Timer(0.02, pair[1].iallreduce, [np.ones(10)]).start()
        assert select.select([descriptor], [], [])[0] == [descriptor]
        assert operation.test()
    finally:
        os.close(descriptor)
