# SPDX-License-Identifier: BSD-3-Clause
"""Sparse matrices in Matrix Market's coordinate form, rewritten in PETSc's binary form.

Formats: math.nist.gov/MatrixMarket/formats.html; PETSc's manual page of MatLoad.
"""

from pathlib import Path

import numpy

from offpath.errors import UserError

_PETSC_MATRIX = 1211216  # MAT_FILE_CLASSID
_FIELDS, _SYMMETRIES = ("real", "integer", "pattern"), ("general", "symmetric")


def convert(source: Path, target: Path) -> None:
    """Raises UserError for a file that is no square sparse matrix of real numbers."""
    size, rows, columns, values = _read(source)
    order = numpy.lexsort((columns, rows))
    lengths = numpy.bincount(rows, minlength=size)
    with target.open("wb") as file:
        for numbers in ((_PETSC_MATRIX, size, size, len(values)), lengths, columns[order]):
            file.write(numpy.asarray(numbers).astype(">i4").tobytes())
        file.write(values[order].astype(">f8").tobytes())


def _read(source: Path) -> tuple[int, numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    try:
        with source.open() as file:
            words = file.readline().lower().split()
            known = len(words) == 5 and words[:3] == ["%%matrixmarket", "matrix", "coordinate"]
            if not known or words[3] not in _FIELDS or words[4] not in _SYMMETRIES:
                raise _unusable(source, "its first line does not announce a real sparse matrix")
            line = file.readline()
            while line.startswith("%") or line.isspace():
                line = file.readline()
            height, width, count = map(int, line.split())
            entries = numpy.loadtxt(file, ndmin=2, comments="%")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise _unusable(source, str(error)) from None
    if height != width or height < 1 or entries.shape != (count, 2 if words[3] == "pattern" else 3):
        raise _unusable(source, f"{height} x {width} with {len(entries)} of {count} entries")
    rows, columns = entries[:, 0].astype(int) - 1, entries[:, 1].astype(int) - 1
    if min(rows.min(), columns.min()) < 0 or max(rows.max(), columns.max()) >= height:
        raise _unusable(source, "an entry lies outside")
    values = numpy.ones(count) if words[3] == "pattern" else entries[:, 2]
    if words[4] == "symmetric":  # one triangle is written
        other = rows != columns
        rows, columns = numpy.append(rows, columns[other]), numpy.append(columns, rows[other])
        values = numpy.append(values, values[other])
    return height, rows, columns, values


def _unusable(source: Path, problem: str) -> UserError:
    return UserError(
        f"{source} cannot be solved with ({problem}). Give a square matrix of real numbers in Matrix Market's "
        "coordinate form, general or symmetric."
    )
