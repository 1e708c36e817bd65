! SPDX-License-Identifier: BSD-3-Clause
! Collectives through one of Fortran's three interfaces to MPI: compiled with LAYER 1 (mpif.h), 2 (use mpi), 3 (use
! mpi_f08). Open MPI's layers call PMPI_*, MPICH's call MPI_*. Each collective is called the same number of times.
#if LAYER == 3
#define REQUEST type(MPI_Request)
#define USE_MPI use mpi_f08
#define INCLUDE_MPI
#define STATUSES_OF(n) type(MPI_Status) :: statuses(n)
#elif LAYER == 2
#define REQUEST integer
#define USE_MPI use mpi
#define INCLUDE_MPI
#define STATUSES_OF(n) integer :: statuses(MPI_STATUS_SIZE, n)
#else
#define REQUEST integer
#define USE_MPI
#define INCLUDE_MPI include 'mpif.h'
#define STATUSES_OF(n) integer :: statuses(MPI_STATUS_SIZE, n)
#endif
program collectives
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 1000
  integer :: ierr, rank, ranks, i, peer
  REQUEST :: request, requests(4)
  STATUSES_OF(4)
  integer, allocatable :: send(:), recv(:), again(:), gathered(:), counts(:), displs(:)
  integer :: scanned(n), scattered(n), shared(n)
  double precision :: vector(n)
  complex :: waves(n), sums(n)
  logical :: ok, flag
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, ranks, ierr)
  allocate(send(n*ranks), recv(n*ranks), again(n*ranks), gathered(n*ranks), counts(ranks), displs(ranks))
  send = [(rank*1000003 + i, i=1, n*ranks)]
  ok = .true.

  recv = -1
  call mpi_ialltoall(send, n, MPI_INTEGER, recv, n, MPI_INTEGER, MPI_COMM_WORLD, request, ierr)
  call mpi_wait(request, MPI_STATUS_IGNORE, ierr)
  ok = ok .and. request == MPI_REQUEST_NULL
  do peer = 0, ranks - 1
    ok = ok .and. all(recv(peer*n + 1:peer*n + n) == [(peer*1000003 + rank*n + i, i=1, n)])
  end do

  ! Four under way at once: in place, irregular, reductions of Fortran's own types.
  again = recv
  call mpi_ialltoall(MPI_IN_PLACE, 0, MPI_INTEGER, again, n, MPI_INTEGER, MPI_COMM_WORLD, requests(1), ierr)
  counts = [(n - peer, peer=1, ranks)]
  displs = [((peer - 1)*n, peer=1, ranks)]
  gathered = -1
  call mpi_iallgatherv(send, n - rank - 1, MPI_INTEGER, gathered, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, &
                       requests(2), ierr)
  vector = [(rank + i, i=1, n)]
  call mpi_iallreduce(MPI_IN_PLACE, vector, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, requests(3), ierr)
  waves = [(cmplx(rank, i), i=1, n)]
  call mpi_ireduce(waves, sums, n, MPI_COMPLEX, MPI_SUM, ranks - 1, MPI_COMM_WORLD, requests(4), ierr)
  flag = .false.
  do while (.not. flag)
    call mpi_testall(4, requests, flag, statuses, ierr)
  end do
  ok = ok .and. all(again == send)
  do peer = 0, ranks - 1
    ok = ok .and. all(gathered(peer*n + 1:peer*n + n - peer - 1) == [(peer*1000003 + i, i=1, n - peer - 1)])
    ok = ok .and. all(gathered(peer*n + n - peer:peer*n + n) == -1)
  end do
  ok = ok .and. all(vector == [(dble(ranks*i + ranks*(ranks - 1)/2), i=1, n)])
  if (rank == ranks - 1) ok = ok .and. all(sums == [(cmplx(ranks*(ranks - 1)/2, ranks*i), i=1, n)])

  shared = merge(send(1:n), 0, rank == 0)
  call mpi_ibcast(shared, n, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(1), ierr)
  call mpi_iscan(send, scanned, n, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, requests(2), ierr)
  call mpi_ireduce_scatter_block(recv, scattered, n, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD, requests(3), ierr)
  call mpi_ibarrier(MPI_COMM_WORLD, requests(4), ierr)
  call mpi_waitall(4, requests, statuses, ierr)
  ok = ok .and. all(shared == [(i, i=1, n)]) .and. all(scanned == send(1:n))
  ok = ok .and. all(scattered == [(rank*1000003 + i, i=1, n)])

  call mpi_allreduce(MPI_IN_PLACE, ok, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
  if (rank == 0) print '(a,l2)', 'fortran:', ok
  call mpi_finalize(ierr)
  if (.not. ok) stop 1
end program collectives
