! SPDX-License-Identifier: BSD-3-Clause
! Names for parts of a Fortran program, as <offpath/region.h> has them for C. Compile this file with the program:
!
!   use offpath_region
!   call region_begin("assemble")
!   ...
!   call region_end("assemble")
!
! Nothing is linked, and nothing happens where nothing is recorded.
module offpath_region
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: region_begin, region_end

  abstract interface
    subroutine mark(name, begins) bind(c)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: begins
    end subroutine mark
  end interface

  interface
    function open_program(file, mode) bind(c, name="dlopen")
      import :: c_int, c_ptr
      type(c_ptr), value :: file
      integer(c_int), value :: mode
      type(c_ptr) :: open_program
    end function open_program

    function find_symbol(program, name) bind(c, name="dlsym")
      import :: c_char, c_funptr, c_ptr
      type(c_ptr), value :: program
      character(kind=c_char), intent(in) :: name(*)
      type(c_funptr) :: find_symbol
    end function find_symbol
  end interface

  integer(c_int), parameter :: lazy = 1
  logical, save :: looked = .false.
  procedure(mark), pointer, save :: recorder => null()

contains

  subroutine region_begin(name)
    character(len=*), intent(in) :: name
    call tell(name, 1_c_int)
  end subroutine region_begin

  subroutine region_end(name)
    character(len=*), intent(in) :: name
    call tell(name, 0_c_int)
  end subroutine region_end

  subroutine tell(name, begins)
    character(len=*), intent(in) :: name
    integer(c_int), intent(in) :: begins
    type(c_funptr) :: symbol
    if (.not. looked) then
      symbol = find_symbol(open_program(c_null_ptr, lazy), "offpath_region_mark" // c_null_char)
      if (c_associated(symbol)) call c_f_procpointer(symbol, recorder)
      looked = .true.
    end if
    if (associated(recorder)) call recorder(trim(name) // c_null_char, begins)
  end subroutine tell

end module offpath_region
