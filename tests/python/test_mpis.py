# SPDX-License-Identifier: BSD-3-Clause
import pytest
from offpath.base.errors import UserError
from offpath.launch import mpis
from offpath.run import info_command


def libraries(monkeypatch, found):
    monkeypatch.setattr(
        mpis, "_libraries_of", lambda program: f"\tlibmpi_abi.so.0 => {found}\n\tlibc.so.6 => /lib/libc.so.6"
    )


@pytest.mark.parametrize(
    "symbol, kind", [(b"MPIR_Err_create_code", mpis.MPICH), (b"ompi_mpi_comm_world", mpis.OPENMPI)]
)
def test_whose_library_with_the_standard_abi_a_program_has(symbol, kind, monkeypatch, tmp_path):
    library = tmp_path / "libmpi_abi.so.0"
    library.write_bytes(b"\x7fELF" + bytes(5000) + symbol)
    libraries(monkeypatch, f"{library} (0x7f)")
    assert mpis.mpi_of_program("/bin/true") == kind
    assert "standard's ABI" in info_command._mpi_of("/bin/true")["note"]
    assert mpis.of_command(["/bin/true"]) == kind


@pytest.mark.parametrize("is_there", [False, True])
def test_a_library_with_the_standard_abi_that_is_not_found_or_nobodys(is_there, monkeypatch, tmp_path):
    library = tmp_path / "libmpi_abi.so.0"
    library.write_bytes(b"\x7fELF" + bytes(5000))
    libraries(monkeypatch, library if is_there else "not found")
    assert "the loader finds none, or one that is of no MPI" in info_command._mpi_of("/bin/true")["note"]
    with pytest.raises(UserError, match="--mpi"):
        mpis.program_mpi_or_default(["/bin/true"])
