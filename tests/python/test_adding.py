# SPDX-License-Identifier: BSD-3-Clause
"""What it takes to add something (CONTRIBUTING.md, "How to add"): each is added to a scratch copy, built and tried, and
the files and lines that had to change are counted."""

import os
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, captured
from offpath.base import words

WORDS = "include/offpath/words"

pytestmark = [pytest.mark.nightly, pytest.mark.machine]


@pytest.fixture(scope="module")
def configured(tmp_path_factory):
    """A copy of the sources with a configured build folder beside it."""
    folder = tmp_path_factory.mktemp("adding")
    listed = captured(["git", "ls-files"], cwd=ROOT, check=True).stdout.split()
    for name in listed:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    subprocess.run(["cmake", "--preset", "release"], cwd=folder, check=True, capture_output=True, timeout=300)
    return folder


@pytest.fixture
def scratch(configured):
    yield configured
    subprocess.run(["git", "checkout", "-q", "."], cwd=configured, check=True)
    subprocess.run(["git", "clean", "-qfd", "src", "tests"], cwd=configured, check=True)


def append_after(path, line, text):
    """Behind the row that begins with `line`."""
    lines = path.read_text().splitlines(keepends=True)
    at = next(i for i, found in enumerate(lines) if found.startswith(line))
    while line.startswith("OFFPATH_") and not lines[at].endswith(")\n"):
        at += 1
    lines.insert(at + 1, text)
    path.write_text("".join(lines))


def replace(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def changed(folder):
    """(new files, lines changed in those that were there)"""
    git = {"cwd": folder, "capture_output": True, "text": True, "check": True}
    new = subprocess.run(["git", "ls-files", "--others", "--exclude-standard", "src"], **git).stdout.split()
    lines = subprocess.run(["git", "diff", "--numstat"], **git).stdout.split("\n")
    return len(new), sum(int(line.split()[0]) for line in lines if line)


def touched(folder):
    """How many files, new ones among them."""
    git = {"cwd": folder, "capture_output": True, "text": True, "check": True}
    changed_ones = subprocess.run(["git", "diff", "--name-only"], **git).stdout.split()
    new_ones = subprocess.run(["git", "ls-files", "--others", "--exclude-standard"], **git).stdout.split()
    return len(changed_ones + new_ones)


def accept(folder, line):
    """Into the list of what the C API promises (test_stability.py)."""
    path = folder / "tests/packaging/abi.txt"
    path.write_text("\n".join(sorted([*path.read_text().splitlines(), line])) + "\n")


def run_python(folder, *files):
    """Tests of the scratch copy, with its own modules."""
    command = [sys.executable, "-m", "pytest", "-q", *files]
    env = {**os.environ, "PYTHONPATH": str(folder / "python"), "OFFPATH_PREFIX": str(folder / "build/release")}
    result = captured(command, cwd=folder, timeout=300, env=env)
    return result.returncode == 0 or result.stdout


def build(folder, target):
    subprocess.run(
        ["cmake", "--build", "build/release", "--target", target], cwd=folder, check=True, timeout=900,
        env={**os.environ, "CMAKE_BUILD_PARALLEL_LEVEL": "2"},
    )  # fmt: skip


def run_tests(folder, target, pattern):
    build(folder, target)
    out = captured(
        [f"build/release/bin/{target}", f"--gtest_filter={pattern}"], cwd=folder, check=True, timeout=300
    ).stdout
    assert "[  PASSED  ] 0 tests" not in out


def run_api_tests(folder):
    """Of the C API, whose library it is."""
    build(folder, "offpath")
    names = ("test_words", "test_api_header", "test_stability")
    assert run_python(folder, *(f"tests/python/{name}.py" for name in names)) is True


def test_an_allgather_algorithm_is_a_file_and_a_row(scratch):
    collectives = scratch / "src/ops/collectives"
    text = (collectives / "allgather_ring.cpp").read_text().replace("allgather_ring", "allgather_doubling")
    (collectives / "allgather_doubling.cpp").write_text(text)
    append_after(
        scratch / WORDS / "algorithms.def",
        "OFFPATH_EXPANSION(ALLGATHER, RING",
        "OFFPATH_EXPANSION(ALLGATHER, DOUBLING, never, allgather_doubling)\n",
    )
    assert changed(scratch) == (1, 1)
    run_tests(scratch, "ops_test", "*allgather_doubling*")


def test_an_algorithm_with_a_new_name_is_a_row_more(scratch):
    """And one in the list of what the C API promises."""
    collectives, table = scratch / "src/ops/collectives", scratch / WORDS / "algorithms.def"
    text = (collectives / "allgather_ring.cpp").read_text().replace("allgather_ring", "allgather_gossip")
    (collectives / "allgather_gossip.cpp").write_text(text)
    number = str(max(row["number"] for row in words.rows("algorithms")) + 1)
    row = f'OFFPATH_ALGORITHM(GOSSIP, {number}, "gossip", "allgather: everybody tells somebody")\n'
    append_after(table, f"OFFPATH_ALGORITHM({words.rows('algorithms')[-1]['NAME']},", row)
    row = "OFFPATH_EXPANSION(ALLGATHER, GOSSIP, never, allgather_gossip)\n"
    append_after(table, "OFFPATH_EXPANSION(ALLGATHER, RING", row)
    accept(scratch, f"number OFFPATH_ALGORITHM_GOSSIP {number}")
    assert (touched(scratch), changed(scratch)) == (3, (1, 3))
    run_tests(scratch, "ops_test", "*allgather_gossip*")
    run_tests(scratch, "policy_test", "*")
    run_tests(scratch, "collective_test", "*")
    run_api_tests(scratch)


def test_a_kind_of_operation_is_a_row_and_what_is_done(scratch):
    """And a row of the golden list. Who posts it and what of its memory is open are two files more."""
    row = 'OFFPATH_OP_KIND(nap, 19, kAside, itself, "")\n'
    append_after(scratch / WORDS / "op_kinds.def", "OFFPATH_OP_KIND(gate", row)
    service = scratch / "src/service/served_client.cpp"
    append_after(service, "    case OpKind::gate:", "    case OpKind::nap:\n")
    replace(scratch / "tests/unit/session/layout_test.cpp", '{"gate", 13}', '{"gate", 13}, {"nap", 19}')
    assert (touched(scratch), changed(scratch)[0]) == (3, 0)
    run_tests(scratch, "session_test", "Layout.*")
    run_tests(scratch, "service_test", "*")
    assert run_python(scratch, "-k", "its_name", "tests/python/test_words.py", "tests/python/test_top.py") is True


def test_a_counter_is_a_row_and_who_counts(scratch):
    """And what golden lists say of layouts."""
    row = 'OFFPATH_SERVICE_COUNTER(uint64_t, naps_count, reported, "naps_total", "Naps.")\n'
    append_after(scratch / WORDS / "counters.def", "OFFPATH_SERVICE_COUNTER(uint64_t, energy_uj", row)
    append_after(
        scratch / "src/service/served_events.cpp",
        "void ServedClient::on_sampled",
        "  view_.header().naps_count.fetch_add(1, std::memory_order_relaxed);\n",
    )
    golden = scratch / "tests/unit/session/layout_test.cpp"
    replace(golden, "saved_ns, 600", "saved_ns, 608")
    replace(golden, "sizeof(offpath_session_counters_t), 240U", "sizeof(offpath_session_counters_t), 248U")
    row = "  EXPECT_AT(SegmentHeader, naps_count, 600);\n"
    append_after(golden, "  EXPECT_AT(SegmentHeader, energy_uj", row)
    replace(scratch / "tests/packaging/abi.txt", "session_counters_t 240", "session_counters_t 248")
    accept(scratch, "field offpath_session_counters_t.naps_count 240 8")
    assert touched(scratch) == 4
    run_tests(scratch, "session_test", "Layout.*")
    run_tests(scratch, "client_test", "*")
    run_api_tests(scratch)


def test_what_the_policy_decides_about_is_a_row(scratch):
    """And one of the golden list. A collective has a row in the front end, and one for each of its functions."""
    row = 'OFFPATH_POLICY_ROW(ineighbor_nap, EXCHANGE, kBlock, kNever, "", "")\n'
    append_after(scratch / WORDS / "policy_rows.def", "OFFPATH_POLICY_ROW(ineighbor_alltoallw", row)
    test = scratch / "tests/unit/policy/policy_test.cpp"
    name = " " * 28 + '"ineighbor_{}",'
    append_after(test, name.format("alltoallw"), name.format("nap") + "\n")
    assert (touched(scratch), changed(scratch)) == (2, (0, 2))
    run_tests(scratch, "policy_test", "*")
    run_tests(scratch, "model_test", "Operations.*")


def test_an_mpi_function_moves_from_one_list_to_the_other(scratch):
    """One whose waits are seen; what offloads has a handler, too."""
    replace(scratch / WORDS / "mpi_others.def", "OFFPATH_MPI_NOT_HANDLED(Buffer_detach, messages)\n", "")
    row = "OFFPATH_MPI_TIMED(Buffer_detach, blocks, nothing)\n"
    append_after(scratch / WORDS / "mpi_functions.def", "OFFPATH_MPI_TIMED(Intercomm_create", row)
    assert touched(scratch) == 2
    build(scratch, "offpath_mpi")
    exported = captured(["nm", "-D", "--defined-only", scratch / "build/release/lib/liboffpath_mpi.so"]).stdout
    assert " MPI_Buffer_detach\n" in exported
    build(scratch, "offpath_profile_mpich")
    assert run_python(scratch, "tests/python/test_mpi_functions.py") is True


PORT = """#include "memory/port.hpp"

namespace offpath::memory {
namespace {

class Nothing : public Port {
 public:
  Outcome read(void*, uint64_t, size_t, Ticket) const override { return refusal(); }
  Outcome write(uint64_t, const void*, size_t, Ticket) const override { return refusal(); }

 private:
  static base::Status refusal() { return base::Status::error(OFFPATH_ERR_MEMORY_FAULT, "there is nothing"); }
};

}  // namespace

std::unique_ptr<Port> make_nothing() { return std::make_unique<Nothing>(); }

}  // namespace offpath::memory
"""

PORT_TEST = """#include "memory/port.hpp"

#include <gtest/gtest.h>

TEST(Nothing, IsRefused) {
  uint8_t byte = 0;
  EXPECT_FALSE(offpath::memory::make_nothing()->read(&byte, 0, 1).ok());
}
"""


def test_a_port_is_a_file_and_a_line(scratch):
    (scratch / "src/memory/nothing.cpp").write_text(PORT)
    append_after(
        scratch / "src/memory/port.hpp", "std::unique_ptr<Port> make_direct", "std::unique_ptr<Port> make_nothing();\n"
    )
    assert changed(scratch) == (1, 1)
    (scratch / "tests/unit/memory/memory_test.cpp").write_text(PORT_TEST)
    run_tests(scratch, "memory_test", "Nothing.*")


CARRIER = """#include "engine/carriers/carrier.hpp"
#include "memory/file.hpp"

#include <stdlib.h>
#include <unistd.h>

namespace offpath::engine {
namespace {

class Paper : public Carrier {
 public:
  explicit Paper(Blocks& blocks) : blocks_(blocks) {}

  bool take(const Offer& offer) override {
    if (!offer.asked || !offer.near || !offer.source.memory || !offer.source.memory->prompt()) return false;
    char path[] = "/tmp/offpath-paper-XXXXXX";
    const auto file = std::make_shared<const memory::OpenFile>(base::Fd(mkstemp(path)));
    unlink(path);
    std::shared_ptr<memory::Port> paper = memory::make_file(file, nullptr, std::make_shared<memory::FileError>(0));
    std::vector<uint8_t> bytes(offer.bytes);
    if (!offer.source.memory->read(bytes.data(), offer.source.address, bytes.size()).ok()) return false;
    if (!paper->write(0, bytes.data(), bytes.size()).ok()) return false;
    blocks_.carry(offer.block, *this);
    blocks_.offer_near(offer.block, {std::move(paper), 0}, offer.bytes);
    return true;
  }

 private:
  Blocks& blocks_;
};

}  // namespace

std::unique_ptr<Carrier> make_paper(Blocks& blocks, Sender&) { return std::make_unique<Paper>(blocks); }

}  // namespace offpath::engine
"""


def test_a_carrier_is_a_file_and_a_row(scratch):
    carriers = scratch / "src/engine/carriers"
    (carriers / "paper.cpp").write_text(CARRIER)
    append_after(carriers / "carriers.def", "OFFPATH_CARRIER(push)", "OFFPATH_CARRIER(paper)\n")
    assert changed(scratch) == (1, 1)
    # All that members of one service give to each other goes through files: who would carry it does not.
    out_of_work = "if (!offer.asked || !offer.near || offer.bytes > 0) return false;"
    replace(carriers / "near.cpp", "if (!offer.asked || !offer.near) return false;", out_of_work)
    run_tests(scratch, "engine_test", "RandomCollectives*:*Push*:Batching.*")


def test_a_fabric_is_a_folder_and_a_row(scratch):
    fabrics = scratch / "src/fabric"
    shutil.copytree(fabrics / "tcp", fabrics / "copper")
    files = list((fabrics / "copper").iterdir())
    for path in files:
        text = path.read_text().replace("fabric/tcp/", "fabric/copper/").replace("fabric_tcp", "fabric_copper")
        text = text.replace("open_tcp", "open_copper").replace("namespace tcp", "namespace copper")
        path.write_text(text.replace("fabric::tcp", "fabric::copper").replace(" tcp::", " copper::"))
    append_after(fabrics / "fabrics.def", "FABRIC(tcp, tcp)", "FABRIC(copper, copper)\n")
    assert changed(scratch) == (len(files), 1)
    test = scratch / "tests/unit/fabric/factory_test.cpp"
    test.write_text(test.read_text().replace('Values("", "tcp", "ucx")', 'Values("copper")'))
    run_tests(scratch, "fabric_test", "Each/FactoryTest*copper*")
