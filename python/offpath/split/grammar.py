# SPDX-License-Identifier: BSD-3-Clause
"""One line of an operation list becomes a statement. The grammar is in docs/guide-krylov.md."""

import ast
import re
from collections.abc import Callable, Collection

from offpath.split.oplist import RIGHT_HAND_SIDE, Kind, Operator, Statement, Term

NAME = r"[A-Za-z_][A-Za-z_0-9]*"
RESERVED = {"inf", "sqrt", "test"}
_ASSIGNMENT = re.compile(rf"^({NAME})\s*=\s*(\S.*)$")
_APPLICATION = re.compile(rf"^({NAME})\s+({NAME})$")
_TEST = re.compile(rf"^test\s+({NAME})$")
_SYMBOLS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
FORMS = "y = A x, y = x + a * z, a = (x, y), a = b / c or test a"


class Malformed(Exception):
    """What is wrong with one line; the reader adds where it stands."""


def statement(text: str, line: int, operators: dict[str, Operator], vectors: Collection[str]) -> Statement:
    """Raises Malformed for a line that has none of the forms."""
    if match := _TEST.match(text):
        if match[1] in vectors:
            raise Malformed(f"test {match[1]} (a vector cannot be compared with the tolerance). Test a dot product")
        return Statement(line, Kind.TEST, None, (match[1],), text)
    match = _ASSIGNMENT.match(text)
    if not match:
        raise Malformed(f"'{text}' is not an operation (syntax). Write one like {FORMS}")
    target, value = match.groups()
    if target in operators or target in RESERVED:
        raise Malformed(f"{target} is assigned to (it is not a name for a value). Choose another name")
    if target == RIGHT_HAND_SIDE:
        raise Malformed(f"{target} is written (it is the right-hand side, and belongs to the caller). Use another name")
    if (application := _APPLICATION.match(value)) and application[1] not in ("test",):
        return _application(text, line, target, *application.groups(), operators, vectors)
    try:
        tree = ast.parse(value, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Malformed(f"'{value}' cannot be read (syntax). Write an operation like {FORMS}") from None
    if isinstance(tree, ast.Tuple):
        return _dot(text, line, target, tree, vectors)
    if target in vectors:
        terms = _terms(tree, 1, vectors)
        names = [name for term in terms for name in (term.coefficient, term.vector) if not is_number(name)]
        return Statement(line, Kind.UPDATE, target, _once(names), text, terms=terms)
    postfix = tuple(_postfix(tree, lambda name: _scalar_name(name, vectors)))
    names = [each for each in postfix if re.fullmatch(NAME, each) and each not in ("inf", "sqrt", "neg")]
    return Statement(line, Kind.SCALAR, target, _once(names), text, postfix=postfix)


def is_number(word: str) -> bool:
    return word == "inf" or not (word[0].isalpha() or word[0] == "_")


def _application(text, line, target, operator, operand, operators, vectors) -> Statement:
    if operator not in operators:
        raise Malformed(
            f"{operator} is not an operator (nothing says what it is). "
            f"Declare: matrix {operator}, or preconditioner {operator}"
        )
    _require_vector(operand, vectors)
    _require_vector(target, vectors)
    return Statement(line, operators[operator].kind, target, (operand,), text, operator=operator)


def _dot(text, line, target, tree: ast.Tuple, vectors) -> Statement:
    if len(tree.elts) != 2 or not all(isinstance(each, ast.Name) for each in tree.elts):
        raise Malformed("a dot product has two vectors (syntax). Write one like a = (x, y)")
    names = (tree.elts[0].id, tree.elts[1].id)
    for name in names:
        _require_vector(name, vectors)
    if target in vectors:
        raise Malformed(
            f"{target} is a vector and a dot product is a scalar (they cannot be equal). "
            "Assign to a name that is not declared a vector"
        )
    return Statement(line, Kind.DOT, target, _once(names), text, factors=names)


def _terms(tree: ast.expr, sign: int, vectors) -> tuple[Term, ...]:
    """The sum that a vector update is; a lone 0 is the zero vector."""
    if isinstance(tree, ast.Constant) and tree.value == 0:
        return ()
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Add, ast.Sub)):
        right = sign if isinstance(tree.op, ast.Add) else -sign
        return _terms(tree.left, sign, vectors) + _terms(tree.right, right, vectors)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return _terms(tree.operand, -sign, vectors)
    if isinstance(tree, ast.Name):
        _require_vector(tree.id, vectors)
        return (Term(sign, "1", tree.id),)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Mult) and isinstance(tree.right, ast.Name):
        _require_vector(tree.right.id, vectors)
        factor = list(_postfix(tree.left, lambda name: _scalar_name(name, vectors)))
        if len(factor) == 1:
            return (Term(sign, factor[0], tree.right.id),)
    raise Malformed(
        f"'{ast.unparse(tree)}' is not a vector times a number or a scalar (an update is a sum of those). "
        "Write terms like x or a * x"
    )


def _postfix(tree: ast.expr, name_of: Callable[[str], str]):
    if isinstance(tree, ast.Name):
        yield name_of(tree.id)
    elif isinstance(tree, ast.Constant) and type(tree.value) in (int, float):
        yield repr(float(tree.value))
    elif isinstance(tree, ast.BinOp) and type(tree.op) in _SYMBOLS:
        yield from _postfix(tree.left, name_of)
        yield from _postfix(tree.right, name_of)
        yield _SYMBOLS[type(tree.op)]
    elif isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        yield from _postfix(tree.operand, name_of)
        yield "neg"
    elif isinstance(tree, ast.Call) and ast.unparse(tree.func) == "sqrt" and len(tree.args) == 1 and not tree.keywords:
        yield from _postfix(tree.args[0], name_of)
        yield "sqrt"
    else:
        raise Malformed(
            f"'{ast.unparse(tree)}' is not a scalar expression (syntax). Use names, numbers, + - * / ( ) and sqrt"
        )


def _scalar_name(name: str, vectors) -> str:
    if name in vectors:
        raise Malformed(
            f"vector {name} stands where a scalar belongs (a vector has no single value). Use its dot product"
        )
    return name


def _require_vector(name: str, vectors) -> None:
    if name not in vectors:
        raise Malformed(
            f"{name} is not a vector (nothing declares it). Add it to the line 'vectors', or correct the name"
        )


def _once(names) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
