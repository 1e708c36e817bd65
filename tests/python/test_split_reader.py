# SPDX-License-Identifier: BSD-3-Clause
"""Operation lists: what is read from text, and one line with file and line number for everything that is wrong."""

import re

import pytest
from hypothesis import given, settings, strategies
from offpath.base.errors import UserError
from offpath.split import load, parse, variants
from offpath.split.oplist import Kind, Term

GOOD = """title Small
matrix A
preconditioner B 0.5
vectors r u p s   # four
setup
    s = A x
    r = b - s
    p = 0
    old = inf
iterate
    u = B r
    new = (r, u)
    beta = new / old
    p = u + beta * p
    s = A p
    delta = (s, p)
    old = new
    alpha = -sqrt(new * new) / -(delta + 0)
    x = x + alpha * p
    r = r - alpha * s - 0 * b
    test new
"""


def test_statements_are_what_was_written():
    oplist = parse(GOOD, "folder/small.txt")
    assert (oplist.name, oplist.title, oplist.operators["B"].cost) == ("small", "Small", 0.5)
    assert [str(each.kind) for each in oplist.iteration] == [
        "precondition", "dot", "scalar", "update", "matvec", "dot", "scalar", "scalar", "update", "update", "test",
    ]  # fmt: skip
    by_name = {each.target or each.text: each for each in oplist.iteration}
    assert by_name["r"].terms == (Term(1, "1", "r"), Term(-1, "alpha", "s"), Term(-1, "0.0", "b"))
    assert by_name["r"].reads == ("r", "alpha", "s", "b")
    assert by_name["alpha"].postfix == ("new", "new", "*", "sqrt", "neg", "delta", "0.0", "+", "neg", "/")
    assert by_name["test new"].kind == Kind.TEST
    assert [each.terms for each in oplist.setup if each.target == "p"] == [()]


@pytest.mark.parametrize(
    "old, new, line, words",
    [
        ("u = B r", "u = A s", 21, "no preconditioner in the iteration"),
        ("s = A p", "s = B p", 21, "no matrix-vector product in the iteration"),
        ("p = u + beta * p", "p = u + beta * pp", 14, "pp is not a vector"),
        ("p = u + beta * p", "p = u + betta * p", 14, "scalar betta is undefined"),
        ("vectors r u p s", "vectors r u p s q", None, None),
        ("p = u + beta * p", "p = u + beta * s\n    s = p", 16, "s is written twice, first in line 15"),
        ("    p = 0\n", "", 13, "p is read before it has a value|cycle|p"),
        ("    u = B r\n", "    u = B q\n    q = u + s\n", 11, "q is not a vector"),
        ("new = (r, u)", "new = (r, u, p)", 12, "two vectors"),
        ("new = (r, u)", "u = (r, u)", 12, "u is a vector and a dot product is a scalar"),
        ("beta = new / old", "beta = new / r", 13, "vector r stands where a scalar belongs"),
        ("beta = new / old", "beta = new ** old", 13, "not a scalar expression"),
        ("beta = new / old", "beta = new / / old", 13, "cannot be read (syntax)"),
        ("beta = new / old", "beta new / old", 13, "not an operation (syntax)"),
        ("beta = new / old", "beta = __import__('os')", 13, "not a scalar expression"),
        ("beta = new / old", "beta = " + "(" * 3000 + "1" + ")" * 3000, 13, "cannot be read"),
        ("p = u + beta * p", "p = u + beta * beta * p", 14, "not a vector times a number or a scalar"),
        ("u = B r", "u = C r", 11, "C is not an operator"),
        ("u = B r", "B = A r", 11, "B is assigned to"),
        ("u = B r", "b = B r", 11, "b is not|b is written"),
        ("test new", "test r", 21, "test r (a vector"),
        ("old = inf", "test old", 9, "old|test in setup"),
        ("vectors r", "vectors r r", 4, "r is declared twice"),
        ("vectors r", "vectors x", 4, "'x' cannot be declared"),
        ("preconditioner B 0.5", "preconditioner B -1", 3, "cost '-1'"),
        ("preconditioner B 0.5", "preconditioner B nan", 3, "cost 'nan'"),
        ("title Small", "titel Small", 1, "stands before setup"),
        ("iterate", "setup", 10, "out of place"),
        ("x = x + alpha * p", "y = alpha", 21, "x is never updated"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(old, new, line, words):
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    if words is None:
        parse(text)
        return
    with pytest.raises(UserError) as error:
        parse(text, "my.txt")
    message = str(error.value)
    assert message.startswith(f"my.txt:{line}: "), message
    assert any(each in message for each in words.split("|")), message
    assert "\n" not in message and re.search(r"\(.+\)\. .+\.$", message), message  # problem (why). What to do.


@settings(max_examples=300, deadline=None, database=None, print_blob=True)
@given(strategies.lists(strategies.tuples(strategies.integers(0, len(GOOD)), strategies.text(max_size=4)), max_size=6))
def test_damaged_lists_are_refused_or_read(damage):
    text = GOOD
    for position, inserted in damage:
        text = text[:position] + inserted + text[position + len(inserted) :]
    try:
        parse(text, "my.txt")
    except UserError as error:
        assert re.match(r"my.txt:\d+: ", str(error))


def test_a_cycle_is_shown():
    text = GOOD.replace("vectors r", "vectors q t r").replace("u = B r\n", "q = t + r\n    u = B q\n    t = u - s\n")
    with pytest.raises(UserError, match=r"my.txt:11: cycle t -> q -> u -> t within an iteration"):
        parse(text, "my.txt")


def test_read_before_written_without_a_cycle():
    text = GOOD.replace("vectors r", "vectors q t r").replace("u = B r\n", "q = t + r\n    u = B q\n    t = 2 * s\n")
    with pytest.raises(UserError, match=r"my.txt:11: t is read before line 13 writes it"):
        parse(text, "my.txt")


def test_files(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text(GOOD)
    assert load(str(file)).name == "mine"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="it is not text"):
        load(str(file))
    with pytest.raises(UserError, match="is larger than 64 KiB"):
        file.write_text("#" * 70000)
        load(str(file))
    with pytest.raises(UserError, match=r"mine.txt:0: there is no 'setup'"):
        file.write_text("")
        load(str(file))
    with pytest.raises(UserError, match="no variant or file 'pipe'.*cgcg"):
        load("pipe")
    with pytest.raises(UserError, match="cannot be read"):
        load(str(tmp_path))


def test_shipped_variants():
    assert variants() == ["amgpcg", "cgcg", "groppcg", "pcg", "pipecg", "pipecr"]
    assert all(load(name).title for name in variants())
