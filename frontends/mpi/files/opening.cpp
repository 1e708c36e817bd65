// SPDX-License-Identifier: BSD-3-Clause
// How files are opened, viewed and closed: natively, and with that our part of them.
#include "mpi/files/opened_file.hpp"
#include "mpi/job/job.hpp"
#include "mpi/native/handlers.hpp"
#include "mpi/native/made.hpp"

#include <exception>

namespace offpath::mpi::handlers {

int File_open(MPI_Comm comm, const char* name, int mode, MPI_Info info, MPI_File* file) {
  Made<MPI_File> made(file);
  const int code = native.File_open(comm, name, mode, info, made.place());
  if (!made.give(code, MPI_FILE_NULL) || !opened_files.on() || Inside::here()) return code;
  const Meeting inside;
  if (!opened_files.adopt(comm, name, mode, *file))
    opened_files.counts.kept_native.fetch_add(1, std::memory_order_relaxed);
  return code;
}

int File_set_view(MPI_File handle, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
                  const char* representation, MPI_Info info) {
  const OpenedRef file = Inside::here() ? nullptr : opened_files.find(handle);
  if (file != nullptr) file->settle();
  const int code = native.File_set_view(handle, displacement, etype, filetype, representation, info);
  if (code != MPI_SUCCESS || file == nullptr) return code;
  const Meeting inside;
  std::optional<View> view;
  try {
    view = view_of(displacement, etype, filetype, representation, job.control());
  } catch (const std::exception&) {  // without memory it is the library's
  }
  return file->set_view(std::move(view));
}

int File_set_atomicity(MPI_File handle, int flag) {
  const OpenedRef file = Inside::here() ? nullptr : opened_files.find(handle);
  if (file != nullptr) file->settle();
  if (file != nullptr && flag != 0) file->leave_to_library();
  return native.File_set_atomicity(handle, flag);
}

int File_close(MPI_File* handle) {
  const OpenedRef file = Inside::here() || handle == nullptr ? nullptr : opened_files.take(*handle);
  if (file != nullptr) {
    file->settle();
    const Inside inside;
    file->close();
  }
  return native.File_close(handle);
}

}  // namespace offpath::mpi::handlers
