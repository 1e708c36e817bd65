! SPDX-License-Identifier: BSD-3-Clause
! mpif.h: Open MPI's Fortran layer calls PMPI_*, MPICH's calls MPI_*.
program exchange
  implicit none
  include 'mpif.h'
  integer, parameter :: count = 1000
  integer :: ierr, rank, ranks, peer, i, request, requests(2)
  integer :: statuses(MPI_STATUS_SIZE, 2)
  integer, allocatable :: send(:), recv(:), again(:), counts(:), displs(:)
  logical :: ok, flag
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, ranks, ierr)
  allocate(send(count*ranks), recv(count*ranks), again(count*ranks), counts(ranks), displs(ranks))
  do i = 1, count*ranks
    send(i) = rank*1000003 + i
  end do
  recv = -1
  call mpi_ialltoall(send, count, MPI_INTEGER, recv, count, MPI_INTEGER, MPI_COMM_WORLD, request, ierr)
  call mpi_wait(request, MPI_STATUS_IGNORE, ierr)
  ok = request == MPI_REQUEST_NULL
  do peer = 0, ranks - 1
    do i = 1, count
      ok = ok .and. recv(peer*count + i) == peer*1000003 + rank*count + i
    end do
  end do
  do peer = 1, ranks
    counts(peer) = count - peer
    displs(peer) = (peer - 1)*count
  end do
  again = recv
  call mpi_ialltoall(MPI_IN_PLACE, 0, MPI_INTEGER, again, count, MPI_INTEGER, MPI_COMM_WORLD, requests(1), ierr)
  call mpi_ialltoallv(send, [(count - rank - 1, i=1, ranks)], displs, MPI_INTEGER, recv, counts, displs, MPI_INTEGER, &
                      MPI_COMM_WORLD, requests(2), ierr)
  flag = .false.
  do while (.not. flag)
    call mpi_testall(2, requests, flag, statuses, ierr)
  end do
  ok = ok .and. all(again == send)
  do peer = 0, ranks - 1
    do i = 1, count - peer - 1
      ok = ok .and. recv(peer*count + i) == peer*1000003 + rank*count + i
    end do
  end do
  call mpi_allreduce(MPI_IN_PLACE, ok, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
  if (rank == 0) print '(a,l2)', 'fortran:', ok
  call mpi_finalize(ierr)
  if (.not. ok) stop 1
end program exchange
