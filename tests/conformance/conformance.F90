! SPDX-License-Identifier: BSD-3-Clause
! The nonblocking collectives from Fortran, one program for each binding: BINDING_MPIFH, BINDING_MPI, BINDING_F08.
! Rank 0 prints a line per call: its name, a checksum over all ranks, and WRONG if a rank did not get what it must; of a
! call that failed on a rank what MPI says of that (FAILED), as nothing is known of its buffers.
#ifdef BINDING_F08
#define HANDLE(kind) type(kind)
#else
#define HANDLE(kind) integer
#endif
program conformance
#if defined(BINDING_F08)
  use mpi_f08
#elif defined(BINDING_MPI)
  use mpi
#endif
  implicit none
#ifdef BINDING_MPIFH
  include 'mpif.h'
#endif
  integer, parameter :: lengths(3) = [1, 37, 60000]
  integer :: rank, ranks, ierr, wrong, i, j, root, n
  HANDLE(MPI_Request) :: request
  HANDLE(MPI_Comm) :: ring
  integer, allocatable, asynchronous :: send(:), recv(:)
  integer, allocatable :: counts(:), displs(:), back(:)

  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, ranks, ierr)
  call mpi_comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  call mpi_cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., ring, ierr)
  call mpi_comm_set_errhandler(ring, MPI_ERRORS_RETURN, ierr)
  wrong = 0
  call mpi_ibarrier(MPI_COMM_WORLD, request, ierr)
  call finish('ibarrier', [rank], [rank])
  do i = 1, size(lengths)
    n = lengths(i)
    allocate(send(n*ranks), recv(n*ranks), counts(ranks), displs(ranks), back(ranks))
    do root = 0, ranks - 1
      call rooted()
    end do
    call movement()
    call reductions()
    call neighbours()
    deallocate(send, recv, counts, displs, back)
  end do
  call datatypes()
  call other_elements()
  call mpi_comm_free(ring, ierr)
  call mpi_finalize(ierr)
  if (wrong > 0) stop 1

contains

  ! Element k of what rank `from` has for rank `to`.
  elemental integer function element(from, to, k)
    integer, intent(in) :: from, to, k
    element = from*100003 + to*1009 + k*7
  end function

  function blocks(from_all, per_rank) result(values)
    logical, intent(in) :: from_all, per_rank
    integer :: values(n*ranks), p, k, me
    me = merge(rank, 0, per_rank)
    do p = 0, ranks - 1
      if (from_all) then
        values(p*n + 1:(p + 1)*n) = [(element(p, me, k), k=1, n)]
      else
        values(p*n + 1:(p + 1)*n) = [(element(rank, p, k), k=1, n)]
      end if
    end do
  end function

  ! Ends the request and tells what came of it; rank 0 collects by point to point only.
  subroutine finish(name, values, expected)
    character(*), intent(in) :: name
    integer, intent(in) :: values(:), expected(:)
    if (ierr == MPI_SUCCESS) call mpi_wait(request, MPI_STATUS_IGNORE, ierr)
    call report(name, values, expected)
  end subroutine

  ! ierr: of the call or of its completion.
  subroutine report(name, values, expected)
    character(*), intent(in) :: name
    integer, intent(in) :: values(:), expected(:)
    integer, parameter :: long = selected_int_kind(18)
    integer(long) :: sums(2), others(2)
    character(200) :: failure, other
    integer :: k
    failure = said_of(ierr)
    sums(1) = 0
    do k = 1, size(values)
      sums(1) = ieor(ishftc(sums(1), 5), int(values(k), long))
    end do
    sums(2) = merge(0, 1, failure /= '' .or. all(values == expected))
    if (rank /= 0) then
      call mpi_send(sums, 2, MPI_INTEGER8, 0, 1, MPI_COMM_WORLD, ierr)
      call mpi_send(failure, len(failure), MPI_CHARACTER, 0, 1, MPI_COMM_WORLD, ierr)
      return
    end if
    do k = 1, ranks - 1
      call mpi_recv(others, 2, MPI_INTEGER8, k, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      call mpi_recv(other, len(other), MPI_CHARACTER, k, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      if (failure == '') failure = other
      sums(1) = ieor(ishftc(sums(1), 7), others(1))
      sums(2) = sums(2) + others(2)
    end do
    if (failure /= '') then
      print '(a,1x,i0,4a)', name, merge(n, 0, allocated(recv)), ' FAILED ', trim(failure), merge('      ', ' WRONG', sums(2) == 0)
    else
      print '(a,1x,i0,1x,z16.16,a)', name, merge(n, 0, allocated(recv)), sums(1), merge('      ', ' WRONG', sums(2) == 0)
    end if
    if (failure /= '' .or. sums(2) > 0) wrong = wrong + 1
  end subroutine

  function said_of(code) result(failure)
    integer, intent(in) :: code
    character(200) :: failure
    character(MPI_MAX_ERROR_STRING) :: text
    integer :: class, length, ignored
    failure = ''
    if (code == MPI_SUCCESS) return
    call mpi_error_class(code, class, ignored)
    call mpi_error_string(code, text, length, ignored)
    write (failure, '(a,i0,a,i0,2a)') 'on rank ', rank, ': error class ', class, ': ', text(1:min(length, 150))
  end function

  subroutine rooted()
    integer :: k
    recv = -1
    recv(1:n) = merge([(element(rank, 0, k), k=1, n)], -1, rank == root)
    call mpi_ibcast(recv, n, MPI_INTEGER, root, MPI_COMM_WORLD, request, ierr)
    call finish('ibcast', recv(1:n), [(element(root, 0, k), k=1, n)])
    send = blocks(.false., .true.)
    recv = -1
    call mpi_igather(send(root*n + 1), n, MPI_INTEGER, recv, n, MPI_INTEGER, root, MPI_COMM_WORLD, request, ierr)
    if (rank == root) then
      call finish('igather', recv, blocks(.true., .true.))
    else
      call finish('igather', recv, spread(-1, 1, n*ranks))
    end if
    recv(1:n) = -1
    call mpi_iscatter(send, n, MPI_INTEGER, recv, n, MPI_INTEGER, root, MPI_COMM_WORLD, request, ierr)
    call finish('iscatter', recv(1:n), [(element(root, rank, k), k=1, n)])
    counts = [(mod(k, 2)*n, k=1, ranks)]
    displs = [((k - 1)*n, k=1, ranks)]
    recv = -1
    call mpi_iscatterv(send, counts, displs, MPI_INTEGER, recv, counts(rank + 1), MPI_INTEGER, root, MPI_COMM_WORLD, &
                       request, ierr)
    call finish('iscatterv', recv(1:n), merge([(element(root, rank, k), k=1, n)], -1, counts(rank + 1) > 0))
    recv = -1
    call mpi_igatherv(send(root*n + 1), counts(rank + 1), MPI_INTEGER, recv, counts, displs, MPI_INTEGER, root, &
                      MPI_COMM_WORLD, request, ierr)
    call finish('igatherv', recv, gathered(blocks(.true., .true.), rank == root))
    send = rank + 1
    recv = -1
    call mpi_ireduce(send, recv, n, MPI_INTEGER, MPI_SUM, root, MPI_COMM_WORLD, request, ierr)
    call finish('ireduce', recv(1:n), spread(merge(ranks*(ranks + 1)/2, -1, rank == root), 1, n))
  end subroutine

  ! What irregular counts leave of `values`.
  function gathered(values, receives)
    integer, intent(in) :: values(:)
    logical, intent(in) :: receives
    integer :: gathered(size(values)), p
    gathered = -1
    do p = 0, ranks - 1
      if (receives .and. counts(p + 1) > 0) gathered(p*n + 1:(p + 1)*n) = values(p*n + 1:(p + 1)*n)
    end do
  end function

  subroutine movement()
    integer :: k
    HANDLE(MPI_Datatype) :: types(ranks)
    logical :: done
    send = blocks(.false., .true.)
    recv = -1
    call mpi_iallgather(send, n, MPI_INTEGER, recv, n, MPI_INTEGER, MPI_COMM_WORLD, request, ierr)
    call finish('iallgather', recv, blocks(.true., .false.))
    recv = -1
    recv(rank*n + 1:(rank + 1)*n) = send(1:n)
    call mpi_iallgather(MPI_IN_PLACE, 0, MPI_INTEGER, recv, n, MPI_INTEGER, MPI_COMM_WORLD, request, ierr)
    call finish('iallgather in place', recv, blocks(.true., .false.))
    counts = [(mod(k, 2)*n, k=1, ranks)]
    displs = [((k - 1)*n, k=1, ranks)]
    recv = -1
    call mpi_iallgatherv(send, counts(rank + 1), MPI_INTEGER, recv, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, &
                         request, ierr)
    call finish('iallgatherv', recv, gathered(blocks(.true., .false.), .true.))
    recv = -1
    call mpi_ialltoall(send, n, MPI_INTEGER, recv, n, MPI_INTEGER, MPI_COMM_WORLD, request, ierr)
    done = .false.
    do while (.not. done .and. ierr == MPI_SUCCESS)
      call mpi_test(request, done, MPI_STATUS_IGNORE, ierr)
    end do
    call finish('ialltoall', recv, blocks(.true., .true.))
    recv = send
    call mpi_ialltoall(MPI_IN_PLACE, 0, MPI_INTEGER, recv, n, MPI_INTEGER, MPI_COMM_WORLD, request, ierr)
    call finish('ialltoall in place', recv, blocks(.true., .true.))
    back = mod(rank + 1, 2)*n
    recv = -1
    call mpi_ialltoallv(send, back, displs, MPI_INTEGER, recv, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, request, ierr)
    call finish('ialltoallv', recv, gathered(blocks(.true., .true.), .true.))
    displs = 4*displs
    types = MPI_INTEGER
    recv = -1
    call mpi_ialltoallw(send, back, displs, types, recv, counts, displs, types, MPI_COMM_WORLD, request, ierr)
    call finish('ialltoallw', recv, gathered(blocks(.true., .true.), .true.))
  end subroutine

  subroutine reductions()
    integer :: k, total
    total = ranks*(ranks + 1)/2
    send = rank + 1
    recv = -1
    call mpi_iallreduce(send, recv, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, ierr)
    call finish('iallreduce', recv(1:n), spread(total, 1, n))
    recv = send
    call mpi_iallreduce(MPI_IN_PLACE, recv, n, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, request, ierr)
    call finish('iallreduce in place', recv(1:n), spread(ranks, 1, n))
    recv = -1
    call mpi_ireduce_scatter_block(send, recv, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, ierr)
    call finish('ireduce_scatter_block', recv(1:n), spread(total, 1, n))
    counts = [(mod(k, 2)*n, k=1, ranks)]
    recv = -1
    call mpi_ireduce_scatter(send, recv, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, ierr)
    call finish('ireduce_scatter', recv(1:n), spread(merge(total, -1, counts(rank + 1) > 0), 1, n))
    recv = -1
    call mpi_iscan(send, recv, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, ierr)
    call finish('iscan', recv(1:n), spread((rank + 1)*(rank + 2)/2, 1, n))
    recv = 0
    call mpi_iexscan(send, recv, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, ierr)
    call finish('iexscan', recv(1:n), spread(rank*(rank + 1)/2, 1, n))
  end subroutine

  ! Both neighbours are the same rank when there are two, and then which block is whose is the library's choice.
  subroutine neighbours()
    integer, asynchronous :: two(2*n), got(2*n)
    integer :: k, below, above
    below = modulo(rank - 1, ranks)
    above = modulo(rank + 1, ranks)
    two = [(element(rank, 0, k), k=1, 2*n)]
    got = -1
    call mpi_ineighbor_allgather(two, n, MPI_INTEGER, got, n, MPI_INTEGER, ring, request, ierr)
    call finish('ineighbor_allgather', got, [(element(below, 0, k), k=1, n), (element(above, 0, k), k=1, n)])
    if (ranks < 3) return
    got = -1
    call mpi_ineighbor_alltoall(two, n, MPI_INTEGER, got, n, MPI_INTEGER, ring, request, ierr)
    call finish('ineighbor_alltoall', got, [(element(below, 0, n + k), k=1, n), (element(above, 0, k), k=1, n)])
  end subroutine

  ! A row of a matrix, spread over its columns, arrives as a column.
  subroutine datatypes()
    integer, parameter :: m = 50
    integer, asynchronous :: matrix(m, m), column(m)
    HANDLE(MPI_Datatype) :: row
    integer :: k
    matrix = reshape([(k + rank, k=1, m*m)], [m, m])
    column = -1
    call mpi_type_vector(m, 1, m, MPI_INTEGER, row, ierr)
    call mpi_type_commit(row, ierr)
    if (rank == 0) then
      call mpi_ibcast(matrix(7, 1), 1, row, 0, MPI_COMM_WORLD, request, ierr)
      column = matrix(7, :)
    else
      call mpi_ibcast(column, m, MPI_INTEGER, 0, MPI_COMM_WORLD, request, ierr)
    end if
    call finish('ibcast of a row', column, [(7 + m*(k - 1), k=1, m)])
    call mpi_type_free(row, ierr)
  end subroutine

  subroutine other_elements()
    double precision, asynchronous :: d(1000), dsum(1000)
    complex, asynchronous :: c(1000), csum(1000)
    logical, asynchronous :: l(1000), lall(1000)
    integer, asynchronous :: pairs(2, 1000), least(2, 1000)
    integer :: k, total, ended
    HANDLE(MPI_Request) :: requests(4)
    total = ranks*(ranks + 1)/2
    d = rank + 1
    c = cmplx(rank + 1, -rank - 1)
    l = [(mod(k, ranks) /= rank .or. k > 500, k=1, 1000)]
    pairs(1, :) = [(mod(k + rank, ranks), k=1, 1000)]
    pairs(2, :) = rank
    call mpi_iallreduce(d, dsum, 1000, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, requests(1), ierr)
    call mpi_iallreduce(c, csum, 1000, MPI_COMPLEX, MPI_SUM, MPI_COMM_WORLD, requests(2), ierr)
    call mpi_iallreduce(l, lall, 1000, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, requests(3), ierr)
    call mpi_iallreduce(pairs, least, 1000, MPI_2INTEGER, MPI_MINLOC, MPI_COMM_WORLD, requests(4), ierr)
    call mpi_waitall(4, requests, MPI_STATUSES_IGNORE, ierr)
    ended = ierr
    call report('double precision', nint(dsum), spread(total, 1, 1000))
    ierr = ended
    call report('complex', nint(real(csum)) - nint(aimag(csum)), spread(2*total, 1, 1000))
    ierr = ended
    call report('logical', merge(1, 0, lall), [(merge(1, 0, k > 500), k=1, 1000)])
    ierr = ended
    call report('minloc', least(2, :), [(modulo(-k, ranks), k=1, 1000)])
  end subroutine

end program conformance
