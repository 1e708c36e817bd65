# SPDX-License-Identifier: BSD-3-Clause
import pytest
from offpath.base.errors import UserError
from offpath.launch import mpis
from offpath.run import info_command


def test_a_program_of_the_standard_abi_is_told_so(monkeypatch):
    library = "\tlibmpi_abi.so.0 => /opt/mpi/lib/libmpi_abi.so.0 (0x7f)"
    monkeypatch.setattr(mpis, "_libraries_of", lambda program: library)
    assert "no back end serves it" in info_command._mpi_of("/bin/true")["note"]
    with pytest.raises(UserError, match="--mpi"):
        mpis.program_mpi_or_default(["/bin/true"])
