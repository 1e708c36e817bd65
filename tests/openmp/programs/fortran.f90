! SPDX-License-Identifier: BSD-3-Clause
! Prints whether a target region of its own, and one of the C function that it calls, run on the host.
program fortran
  use iso_c_binding
  use omp_lib
  implicit none
  interface
    subroutine double_all(values, count, on_host) bind(C)
      import
      real(c_double) :: values(*)
      integer(c_int), value :: count
      integer(c_int) :: on_host
    end subroutine
  end interface
  real(c_double) :: values(100) = 21
  integer(c_int) :: on_host
  logical :: here
  here = .false.
  !$omp target map(tofrom: here)
  here = omp_is_initial_device()
  !$omp end target
  call double_all(values, 100, on_host)
  print '(l1, 1x, i0, 1x, f0.1)', here, on_host, values(100)
end program
