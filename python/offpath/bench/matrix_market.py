# SPDX-License-Identifier: BSD-3-Clause
"""Sparse matrices in Matrix Market's coordinate form, rewritten in PETSc's binary form.

Formats: math.nist.gov/MatrixMarket/formats.html; PETSc's manual page of MatLoad.
"""

from pathlib import Path

import numpy

from offpath.base.errors import UserError

_PETSC_MATRIX = 1211216  # MAT_FILE_CLASSID
_FIELDS, _SYMMETRIES = ("real", "integer", "pattern"), ("general", "symmetric")


def convert(source: Path, target: Path) -> None:
    """Raises UserError for a file that is no square sparse matrix of real numbers."""
    matrix = _read(source)
    lengths = numpy.diff(matrix.indptr)
    with target.open("wb") as file:
        for numbers in ((_PETSC_MATRIX, *matrix.shape, matrix.nnz), lengths, matrix.indices):
            file.write(numpy.asarray(numbers).astype(">i4").tobytes())
        file.write(matrix.data.astype(">f8").tobytes())


def _read(source: Path):
    """As scipy's matrix of compressed rows, sorted."""
    try:
        from scipy.io import mminfo, mmread  # slow to import, and nothing else needs it
    except ImportError:
        raise UserError("scipy is not installed (it reads matrices). Install it (Debian: python3-scipy).") from None
    try:
        height, width, _, form, field, symmetry = mminfo(source)
        if form != "coordinate" or field not in _FIELDS or symmetry not in _SYMMETRIES:
            raise ValueError(f"it holds a {symmetry} {field} {form}")
        if height != width or height < 1:
            raise ValueError(f"it is {height} x {width}")
        matrix = mmread(source).tocsr()
    except (OSError, ValueError, OverflowError, MemoryError) as error:
        raise UserError(
            f"{source} cannot be solved with ({error}). Give a square matrix of real numbers in Matrix Market's "
            "coordinate form, general or symmetric."
        ) from None
    matrix.sort_indices()
    return matrix
