# SPDX-License-Identifier: BSD-3-Clause
"""How ranks find each other: by launchers' variables, stores and secrets. Needs no service."""

import contextlib
import os
import socket
import threading

import pytest
from conftest import together
from offpath import ArgumentError, FolderStore, NoServiceError, OffpathError, TcpStore, WaitTimeout
from offpath.base import proc
from offpath.rendezvous import launchers, start
from offpath.rendezvous.hosts import first_host, tasks_of_node
from offpath.rendezvous.meeting import Meeting, ranks_text
from offpath.rendezvous.secret import drawn_once
from strangers import assert_slow_one_is_sent_away

SECRET = b"0123456789abcdef"
TORCH = {"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "node1", "MASTER_PORT": "29500"}
SLURM = {
    "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "6", "SLURM_NODEID": "1",
    "SLURM_STEP_TASKS_PER_NODE": "2(x3)", "SLURM_STEP_NODELIST": "dpu[03-05],login",
}  # fmt: skip
OPENMPI = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}
HYDRA = {"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "1"}


@pytest.mark.parametrize(
    "environ, expected",
    [
        ({}, ("nobody", 0, 1, True)),
        (TORCH, ("torchrun", 3, 8, False)),
        (TORCH | {"LOCAL_WORLD_SIZE": "8"}, ("torchrun", 3, 8, True)),
        (SLURM, ("Slurm", 2, 6, False)),
        (OPENMPI | SLURM, ("Open MPI's mpirun", 1, 4, True)),
        (HYDRA | SLURM, ("MPICH's mpiexec", 0, 2, False)),
        (SLURM | {"PMI_RANK": "5", "PMI_SIZE": "6"}, ("Slurm", 2, 6, False)),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, ("MPICH's mpiexec", 1, 2, False)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "1"}, ("nobody", 0, 1, True)),  # the batch script
        ({"RANK": "3"}, ("nobody", 0, 1, True)),
    ],
)
def test_launchers(environ, expected):
    place = launchers.find_place(environ)
    assert (place.launcher, place.rank, place.size, place.is_local) == expected


def test_what_launchers_tell_of_rank_0():
    assert launchers.find_place(TORCH).address == ("node1", 29501)
    host, port = launchers.find_place(SLURM).address
    assert host == "dpu03" and 15000 <= port < 30000
    assert launchers.find_place(OPENMPI | {"OMPI_MCA_orte_precondition_transports": "drawn"}).secret == b"drawn"
    assert launchers.find_place(SLURM | {"OFFPATH_JOB_SECRET": "x"}).secret == b"x"


@pytest.mark.parametrize("wrong", [{"RANK": "8"}, {"RANK": "-1"}, {"RANK": "x"}, {"MASTER_PORT": ""}])
def test_variables_that_make_no_sense(wrong):
    with pytest.raises(ArgumentError):
        launchers.find_place(TORCH | wrong)


def test_a_job_without_a_name_is_its_launchers_process():
    environments = {os.getppid(): b"RANK=1\0HOME=/"}
    above = launchers._ancestor("RANK", lambda process: environments.get(process, b"HOME=/"))
    assert above[0] == str(max(1, proc.parent(os.getppid()))) and above[1]  # init has no parent
    assert launchers._ancestor("RANK", lambda process: b"")[0] == str(os.getppid())


def test_lists_of_slurm():
    hosts = {"n1": "n1", "n[01-03,7],m": "n01", "a,b": "a", "rack[2,5]-ib": "rack2-ib", "": ""}
    assert {nodes: first_host(nodes) for nodes in hosts} == hosts
    assert [tasks_of_node("2(x2),1", node) for node in range(4)] == [2, 2, 1, 0]
    assert tasks_of_node("", 0) == 0


def meet(stores, timeout=20.0, ranks=None, size=None, secret=b"", address=None, find=None):
    """Each rank's result or error, in threads."""
    size, out = size or len(stores), {}

    def one(rank):
        def attach(drawn):
            return (address or (lambda rank, drawn: b"at %d " % rank + drawn.token))(rank, drawn)

        try:
            out[rank] = Meeting(stores[rank], "1", rank, size, timeout, find and find(rank) or secret).hold(attach)
        except OffpathError as error:
            out[rank] = error

    together(one, [(rank,) for rank in (range(size) if ranks is None else ranks)])
    return out


def folders(tmp_path, count):
    return [FolderStore(tmp_path / "meet") for _ in range(count)]


class Dictionary(dict):
    def set(self, key, value):
        self[key] = value


class LikeTorch(Dictionary):
    """get() of torch's stores waits for minutes: it must not be called before the key is there."""

    def check(self, keys):
        return all(key in self for key in keys)

    def get(self, key):
        assert key in self
        return self[key]


@pytest.mark.parametrize("kind", ["folder", "get gives None", "like torch", "tcp"])
def test_ranks_meet(kind, tmp_path):
    if kind == "folder":
        stores = folders(tmp_path, 3)
    elif kind == "tcp":
        stores = tcp_stores(3)
    else:
        stores = [LikeTorch() if kind == "like torch" else Dictionary()] * 3
    met = meet(stores)
    assert {rank: one.addresses for rank, one in met.items()} == dict.fromkeys(range(3), met[0].addresses)
    assert [address[:5] for address in met[0].addresses] == [b"at 0 ", b"at 1 ", b"at 2 "]
    assert len(met[0].drawn.token) == 32 and len(met[0].drawn.team_id) == 16
    assert met[0].addresses[2][5:] == met[1].drawn.token


@pytest.fixture(autouse=True)
def runtime_folder(tmp_path, monkeypatch):
    """Of this node; nothing may be left there."""
    folder = tmp_path / "runtime"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("OFFPATH_RUNTIME_DIR", str(folder))
    yield folder
    assert not list(folder.iterdir())


def only_number(rank, drawn):
    return b"%d" % rank


@pytest.mark.parametrize("secret", [SECRET, b""])
def test_who_reads_the_store_learns_no_secret(secret):
    store = Dictionary()
    met = meet([store] * 2, secret=secret, address=only_number)
    assert met[0].drawn == met[1].drawn
    read = b"".join(store.values())
    for word in (met[0].drawn.token, met[0].drawn.team_id, met[0].drawn.key):
        assert word not in read and word.hex().encode() not in read


def test_the_programs_store_and_the_jobs_secret(monkeypatch):
    """As torch's process groups call it."""
    monkeypatch.setenv("OFFPATH_JOB_SECRET", SECRET.decode())
    place = start._place(Dictionary(), 1, 2)
    assert place.secret == SECRET
    monkeypatch.setenv("OFFPATH_JOB_SECRET", "short")
    with pytest.raises(ArgumentError, match="could be guessed"):
        start._meet(start._place(Dictionary(), 1, 2), Dictionary(), 1.0, only_number)


class Attacked(Dictionary):
    """Somebody else writes, too: what `change` makes of each value."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def set(self, key, value):
        self[key] = self.change(key, value)


@pytest.mark.parametrize("secret", [SECRET, b""])
@pytest.mark.parametrize("what", ["drawn", "address/1", "table"])
def test_who_writes_to_the_store_joins_nothing(what, secret, monkeypatch):
    monkeypatch.setattr("offpath.rendezvous.meeting._GRACE_S", 0.2)

    def change(key, value):
        return value[:-1] + bytes([value[-1] ^ 1]) if key.endswith(what) else value

    met = meet([Attacked(change)] * 2, secret=secret, address=only_number, timeout=5)
    assert isinstance(met[1], OffpathError)
    told = str(met[1])
    assert "was not written by a rank of this job" in told or (what == "drawn" and "no common secret" in told)


def test_ranks_of_several_nodes_need_a_secret(tmp_path, monkeypatch):
    """Whoever can read their store would know as much as they do."""
    values, node = {}, threading.local()
    folder_of = {False: tmp_path / "runtime", True: tmp_path / "another node"}
    monkeypatch.setattr("offpath.rendezvous.secret.runtime_folder", lambda: folder_of[getattr(node, "other", False)])

    class There(Dictionary):
        def get(self, key):
            node.other = True  # this thread is rank 1
            return values.get(key)

        def set(self, key, value):
            values[key] = value

    class Here(There):
        def get(self, key):
            return values.get(key)

    met = meet([Here(), There()], address=only_number)
    for error in met.values():
        assert isinstance(error, OffpathError) and "Set OFFPATH_JOB_SECRET" in str(error) and "rank 1" in str(error)


def test_different_secrets_are_named():
    store, out = Dictionary(), {}

    def one(rank, secret):
        try:
            out[rank] = Meeting(store, "1", rank, 2, 5.0, secret).hold(lambda drawn: b"here")
        except OffpathError as error:
            out[rank] = error

    together(one, [(rank, SECRET + bytes([rank])) for rank in range(2)])
    assert all("the ranks have different secrets" in str(error) for error in out.values()), out


class Torchs(LikeTorch):
    """With what else torch's stores have."""

    def add(self, key, more):
        self[key] = self.get(key) + more if key in self else more
        return self[key]

    def compare_set(self, key, expected, desired):
        assert expected == b""
        return self.setdefault(key, desired)


def test_a_meeting_reads_nothing_that_one_of_its_name_has_left():
    store = Torchs()
    before = meet([store] * 3)
    assert isinstance(meet([store] * 3, timeout=0.1, ranks=[1])[1], WaitTimeout)
    after = meet([store] * 3)
    assert after[0].drawn == after[1].drawn == after[2].drawn != before[0].drawn


def test_who_was_alone_before_meets_others(monkeypatch):
    names = []
    monkeypatch.setattr(Meeting, "hold", lambda meeting, _: names.append(meeting.name))
    for size in (2, 1, 2):
        start._meet(start._place(Dictionary(), 0, size), Dictionary(), 1.0, only_number)
    assert int(names[2]) == int(names[0]) + 1
    for size in (2, 2):
        start._meet(start._place(Dictionary(), 0, size), Torchs(), 1.0, only_number)
    assert names[3] == names[4], "such a store counts the meetings itself"


class Contested(Torchs):
    """Another one comes between a look and a word."""

    def __init__(self, secret):
        super().__init__()
        self.secret, self.other = secret, None

    def compare_set(self, key, expected, desired):
        if self.other is None:
            self.other = ()
            self.other = drawn_once(self, 1, self.secret)
        return super().compare_set(key, expected, desired)


@pytest.mark.parametrize("secret", [SECRET, b""])
def test_the_first_one_draws_for_all(secret):
    store = Contested(secret)
    drawn, folder = drawn_once(store, 0, secret)
    assert (drawn, folder) == (store.other[0], None)
    assert drawn_once(store, 2, secret) == (drawn, None)
    assert (store.other[1] is None) == bool(secret)
    read = b"".join(store.values())
    assert not any(word in read for word in (drawn.token, drawn.team_id, drawn.key, secret or drawn.key))
    if store.other[1] is not None:
        store.other[1].close(last=True)
        with pytest.raises(ArgumentError, match="rank 3 on .* Set OFFPATH_JOB_SECRET"):
            drawn_once(store, 3, secret)


@pytest.mark.parametrize("secret", [SECRET, b""])
def test_what_strangers_draw_is_refused(secret):
    """Who can write to the store: something of their own, or another byte of it."""
    store = Torchs()
    _, folder = drawn_once(store, 0, secret)
    ((key, good),) = store.items()
    for wrong in (os.urandom(64), b"", *(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :] for at in range(64))):
        store[key] = wrong
        with pytest.raises(OffpathError, match="no common secret|was not written by a rank of this job"):
            drawn_once(store, 1, secret)
    if folder is not None:
        folder.close(last=True)


def test_where_nobody_can_be_the_first():
    with pytest.raises(ArgumentError, match="Begin with init_process_group"):
        drawn_once(LikeTorch(), 0, SECRET)
    with pytest.raises(ArgumentError, match="could be guessed"):
        drawn_once(Torchs(), 0, b"short")


def test_who_is_missing_is_named(tmp_path):
    met = meet(folders(tmp_path, 5), timeout=0.3, ranks=[0, 2], size=5)
    assert isinstance(met[0], WaitTimeout) and isinstance(met[2], WaitTimeout)
    for error in met.values():
        assert "ranks 1, 3, 4 of 5 did not come within 0.3 s" in str(error)
    assert "rank 0 of 2 did not come" in str(meet([Dictionary()] * 2, timeout=0.1, ranks=[1])[1])
    assert ranks_text([4]) == "rank 4" and ranks_text(list(range(40))).endswith("7, ... (40 in all)")


def test_who_was_told_of_another_number_of_ranks_says_so():
    store, out = Dictionary(), {}

    def one(rank, size):
        try:
            out[rank] = Meeting(store, "1", rank, size, 5.0, SECRET).hold(lambda drawn: b"here")
        except OffpathError as error:
            out[rank] = error

    together(one, [(rank, 2 + rank) for rank in range(2)])
    assert "rank 0 says that there are 2 ranks, and rank 1 that there are 3" in str(out[1]), out


def test_what_one_rank_fails_with_all_hear():
    def address(rank, drawn):
        if rank == 1:
            raise NoServiceError("no core is left")
        return b"here"

    met = meet([Dictionary()] * 3, address=address)
    assert isinstance(met[1], NoServiceError)
    assert "rank 1 on " in str(met[0]) and "no core is left" in str(met[0]) and str(met[2]) == str(met[0])


@pytest.mark.parametrize("lacks", [0, 1])
def test_a_secret_that_one_rank_does_not_find_is_missed_by_all(lacks):
    def find(rank):
        def found():
            if rank == lacks:
                raise ArgumentError("there is no secret")
            return SECRET

        return found

    met = meet([Torchs()] * 3, find=find)
    assert isinstance(met[lacks], ArgumentError) and all(isinstance(error, OffpathError) for error in met.values()), met
    assert lacks == 0 or all("rank 1 on " in str(met[rank]) for rank in (0, 2)), met


def free_port():
    with socket.create_server(("", 0)) as server:
        return server.getsockname()[1]


def tcp_stores(count, secret=SECRET):
    port = free_port()
    return [TcpStore("localhost", port, serves=rank == 0, secret=secret, timeout=10) for rank in range(count)]


def test_a_store_by_tcp_answers_only_who_knows_the_secret():
    server, client = tcp_stores(2)
    client.set("a key", b"value" * 100000)
    assert server.get("a key") == client.get("a key") == b"value" * 100000
    for store in (server, client):
        with pytest.raises(KeyError):
            store.get("another")
    host, port = server.where.split(":")
    with pytest.raises((ArgumentError, WaitTimeout)):
        TcpStore(host, int(port), serves=False, secret=b"another secret of 16", timeout=0.1)
    with socket.create_connection((host, int(port))) as stranger:
        stranger.sendall(b"\xff" * 100)
        stranger.settimeout(10)
        with contextlib.suppress(ConnectionResetError):
            while stranger.recv(1000):  # its word, and then the end
                pass
    with pytest.raises(NoServiceError, match="cannot be opened"):
        TcpStore(host, int(port), serves=True, secret=SECRET)
    client.close()
    server.close()
    with pytest.raises(WaitTimeout, match="rank 0 does not answer"):
        TcpStore(host, int(port), serves=False, secret=SECRET, timeout=0.1)


def test_strangers_at_a_store_cost_next_to_nothing():
    """Many who say nothing, and one who says a byte now and then; whoever knows the secret is served meanwhile."""
    server, client = tcp_stores(2)
    client.set("a key", b"value")
    threads = threading.active_count()
    host, port = server.where.split(":")
    with contextlib.ExitStack() as opened:
        slow, *_ = [opened.enter_context(socket.create_connection((host, int(port)))) for _ in range(300)]
        assert client.get("a key") == b"value"
        late = TcpStore(host, int(port), serves=False, secret=SECRET, timeout=10)
        assert late.get("a key") == b"value" and threading.active_count() == threads
        slow = opened.enter_context(socket.create_connection((host, int(port))))
        assert len(slow.recv(1000)) == 32
        assert_slow_one_is_sent_away(slow, b"x")
    for store in (late, client, server):
        store.close()


def test_no_store_without_a_secret():
    with pytest.raises(ArgumentError, match="OFFPATH_JOB_SECRET"):
        TcpStore("localhost", 1, serves=True, secret=b"short")


def test_a_folder_of_this_node_forgets_the_dead(tmp_path):
    store = FolderStore(tmp_path / "meet", of_one_node=True)
    store.set("mine", b"1")
    (store.folder / "dead").write_bytes(b"4194305 1\n1")
    assert store.get("mine") == b"1"
    for key in ("dead", "none"):
        with pytest.raises(KeyError):
            store.get(key)
    store.close(last=True)
    assert not store.folder.exists()
    (tmp_path / "open").mkdir(mode=0o755)
    with pytest.raises(ArgumentError, match="only its owner"):
        FolderStore(tmp_path / "open")


@pytest.mark.parametrize(
    "options, environ, words",
    [
        ({"rank": 0}, {}, "belong together"),
        ({"rank": 2, "size": 2}, {}, "no rank 2"),
        ({"rank": 0, "size": 2}, {}, "Pass a store"),
        ({"timeout": 0}, {}, "no number of seconds"),
        ({}, {"OFFPATH_INIT_TIMEOUT_S": "soon"}, "OFFPATH_INIT_TIMEOUT_S"),
        ({"comm": 3}, {}, "no communicator of mpi4py"),
        ({}, HYDRA, "does not say where rank 0 is"),
        ({}, HYDRA | {"OFFPATH_INIT_ADDRESS": "nowhere"}, "no address"),
        ({}, TORCH, "OFFPATH_JOB_SECRET"),
    ],
)
def test_wrong_ways_to_begin(options, environ, words, monkeypatch):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ArgumentError, match=words):
        start.init(**options)
