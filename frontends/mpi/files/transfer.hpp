// SPDX-License-Identifier: BSD-3-Clause
// One offloaded transfer of a file, from its posting to the end of its MPI request. What the service cannot do, because the file
// system refuses it or the service is lost, this process does again by itself, piece by piece in the rounds of the offloader:
// what the file system says then is the error.
//
// Threads: one at a time; under the offloader's lock once submitted.
#pragma once

#include "files/transfer.hpp"
#include "memory/file.hpp"
#include "mpi/files/opened_file.hpp"
#include "mpi/lanes/requested.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace offpath::mpi {

// What a call asks for. `first`: data byte of the view.
struct Wanted {
  uint64_t first;
  void* buffer;
  int64_t count;
  MPI_Datatype type;
};

class FileTransfer : public Loose {
 public:
  FileTransfer(OpenedRef file, FileWay way) : file_(std::move(file)), way_(way) {}
  ~FileTransfer() override;

  // Hands it to the service; packs what has to be. False: it goes natively. Inside. May throw bad_alloc.
  bool post(const Wanted& wanted, const TypeRef& type);
  uint64_t bytes() const { return params_.memory.bytes; }

  bool advance() override;
  uint64_t moved_bytes() const override { return moved_; }
  int raise(int code) const override { return file_->raise(code); }

 private:
  class Again;
  bool describe(const Wanted& wanted, const TypeRef& type);
  int deliver();

  const OpenedRef file_;
  const FileWay way_;
  offpath_op_t* op_ = nullptr;
  offpath_file_transfer_t params_{};
  std::array<offpath_layout_t, 2> layouts_{};
  TypeRef memory_type_, file_type_;   // keep the layouts' ranges
  std::vector<std::byte> staging_;    // packed
  std::unique_ptr<HeldType> packed_;  // a read that is to be unpacked, as
  Wanted wanted_{};                   // this says
  std::unique_ptr<Again> again_;
  bool counted_ = false;
  uint64_t moved_ = 0;
};

}  // namespace offpath::mpi
