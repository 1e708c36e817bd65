// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/files/transfer.hpp"

#include "memory/port.hpp"
#include "mpi/job/job.hpp"
#include "mpi/native/native.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>

namespace offpath::mpi {
namespace {

memory::Layout layout_of(const offpath_layout_t& given) {
  memory::Layout layout{given.size_bytes, given.extent_bytes, {}};
  layout.ranges.reserve(given.ranges_count);
  for (uint32_t i = 0; i < given.ranges_count; ++i)
    layout.ranges.push_back({given.ranges[i].offset_bytes, given.ranges[i].bytes});
  return layout;
}

offpath_layout_t layout_of(const DataType& type) {
  return {static_cast<uint64_t>(type.size_bytes), type.extent_bytes, type.ranges.data(),
          static_cast<uint32_t>(type.ranges.size())};
}

}  // namespace

// The transfer by this process itself, with the places that the service has. What is no memory is an error here, too, and no crash.
class FileTransfer::Again {
 public:
  Again(const OpenedRef& file, FileWay way, const offpath_file_transfer_t& params)
      : way_(way), error_(std::make_shared<memory::FileError>(0)), bytes_(params.memory.bytes) {
    files::Transfer wanted;
    for (uint32_t i = 0; i < params.layouts_count; ++i) wanted.layouts.push_back(layout_of(params.layouts[i]));
    wanted.memory.bytes = params.memory.bytes;
    wanted.offset = params.offset_bytes;
    wanted.skip = params.skip_bytes;
    wanted.layout = params.layout;
    const std::shared_ptr<const memory::OpenFile> descriptor(file, &file->descriptor());
    struct stat about {};
    if (fstat(descriptor->get(), &about) != 0)
      *error_ = errno;
    else if (way == FileWay::read)
      bytes_ = files::bytes_within(wanted, static_cast<uint64_t>(about.st_size));
    const auto address = reinterpret_cast<uint64_t>(params.memory.address);
    memory_ = place(memory::make_cma(getpid()), address, params.memory.layout, wanted, memory_base_);
    file_ =
        place(memory::make_file(descriptor, nullptr, error_, true), wanted.offset, wanted.layout, wanted, file_base_);
    file_base_ += wanted.skip;
  }

  // Some of it. True: it is over.
  bool advance() {
    if (*error_ != 0) return true;
    buffer_.resize(kPieceBytes);
    for (int pieces = 0; pieces < kPiecesAtATime && done_ < bytes_; ++pieces) {
      const uint64_t bytes = std::min<uint64_t>(kPieceBytes, bytes_ - done_);
      const bool writes = way_ == FileWay::write;
      const memory::Port &from = writes ? *memory_ : *file_, &to = writes ? *file_ : *memory_;
      const uint64_t at = done_ + (writes ? memory_base_ : file_base_),
                     there = done_ + (writes ? file_base_ : memory_base_);
      const memory::Outcome read = from.read(buffer_.data(), at, bytes);
      const memory::Outcome moved = read.ok() ? to.write(there, buffer_.data(), bytes) : read;
      if (!moved.ok() && *error_ == 0) *error_ = moved.status().code() == OFFPATH_ERR_MEMORY_FAULT ? EFAULT : EIO;
      if (!moved.ok()) return true;
      done_ += bytes;
    }
    return done_ == bytes_;
  }
  int error() const { return *error_; }
  uint64_t moved() const { return done_; }

 private:
  static constexpr size_t kPieceBytes = 1 << 20;
  static constexpr int kPiecesAtATime = 8;

  static std::unique_ptr<memory::Port> place(std::unique_ptr<memory::Port> port, uint64_t base, uint32_t layout,
                                             const files::Transfer& wanted, uint64_t& first) {
    first = layout == 0 ? base : 0;
    if (layout == 0) return port;
    return memory::make_strided(std::move(port), base, memory::index_layout(wanted.layouts[layout - 1]));
  }

  const FileWay way_;
  const std::shared_ptr<memory::FileError> error_;
  uint64_t bytes_;
  uint64_t done_ = 0;
  std::unique_ptr<memory::Port> memory_, file_;
  uint64_t memory_base_ = 0, file_base_ = 0;
  std::vector<std::byte> buffer_;
};

// One that has no request yet has its memory until it has ended.
FileTransfer::~FileTransfer() {
  if (op_ != nullptr) offpath_op_wait(op_, UINT64_MAX);
  offpath_op_free(op_);
  if (counted_) file_->under_way().fetch_sub(1, std::memory_order_release);
}

// Where the bytes are, in memory and in the file.
bool FileTransfer::describe(const Wanted& wanted, const TypeRef& type) {
  const auto address = reinterpret_cast<uintptr_t>(wanted.buffer);
  const uint64_t bytes = static_cast<uint64_t>(wanted.count) * static_cast<uint64_t>(type->size_bytes);
  params_.struct_bytes = sizeof(params_);
  params_.flags = way_ == FileWay::write ? OFFPATH_FILE_LOCKED : 0;
  params_.memory.bytes = bytes;
  params_.layouts = layouts_.data();
  if (const auto run = as_run(*type, address, wanted.count)) {
    params_.memory.address = reinterpret_cast<const void*>(run->address);
  } else if (type->form == Form::layout && !type->ranges.empty()) {
    memory_type_ = type;
    layouts_[params_.layouts_count++] = layout_of(*type);
    params_.memory.address = wanted.buffer;
    params_.memory.layout = params_.layouts_count;
  } else {
    if (bytes > job.settings().staging_bytes) return false;
    HeldType held(wanted.type, type);
    staging_.resize(bytes);
    params_.memory.address = staging_.data();
    wanted_ = wanted;
    if (way_ == FileWay::write) return pack(held, address, wanted.count, staging_.data(), job.control()) == MPI_SUCCESS;
    packed_ = std::make_unique<HeldType>(std::move(held));
    if (packed_->hold() != MPI_SUCCESS) return false;
  }
  return params_.memory.address != nullptr;
}

bool FileTransfer::post(const Wanted& wanted, const TypeRef& type) {
  const std::shared_ptr<offpath_file_t> served = file_->served();
  if (served == nullptr || !describe(wanted, type)) return false;
  const View& view = *file_->view();
  params_.offset_bytes = view.displacement;
  if (view.filetype == nullptr) {
    if (__builtin_add_overflow(view.displacement, wanted.first, &params_.offset_bytes)) return false;
  } else {
    file_type_ = view.filetype;
    layouts_[params_.layouts_count++] = layout_of(*file_type_);
    params_.layout = params_.layouts_count;
    params_.skip_bytes = wanted.first;
  }
  const auto post_it = way_ == FileWay::write ? offpath_file_write : offpath_file_read;
  if (post_it(served.get(), &params_, &op_) != OFFPATH_OK) return false;
  if (way_ == FileWay::write) file_->note_write();
  counted_ = true;
  file_->under_way().fetch_add(1, std::memory_order_acq_rel);
  return true;
}

// What was read is unpacked as far as it came. A file may end within an element: the rest of that one stays as it is.
int FileTransfer::deliver() {
  if (packed_ == nullptr || moved_ == 0) return MPI_SUCCESS;
  const auto size = static_cast<uint64_t>((*packed_)->size_bytes);
  const auto address = reinterpret_cast<uintptr_t>(wanted_.buffer);
  auto elements = static_cast<int64_t>(moved_ / size);
  const uint64_t cut = moved_ % size;
  if (cut != 0) {
    std::vector<std::byte> last(size);
    const uintptr_t there = address + static_cast<uintptr_t>(elements * (*packed_)->extent_bytes);
    if (const int code = pack(*packed_, there, 1, last.data(), job.control()); code != MPI_SUCCESS) return code;
    std::copy(last.begin() + static_cast<std::ptrdiff_t>(cut), last.end(),
              staging_.begin() + static_cast<std::ptrdiff_t>(moved_));
    ++elements;
  }
  return unpack(*packed_, staging_.data(), address, elements, job.control());
}

bool FileTransfer::advance() {
  try {
    if (again_ == nullptr) {
      const offpath_status_t status = offpath_op_test(op_);
      if (status == OFFPATH_IN_PROGRESS) return false;
      if (status == OFFPATH_OK) {
        offpath_file_result_t result{};
        result.struct_bytes = sizeof(result);
        offpath_file_result(op_, &result);
        moved_ = result.bytes;
      } else {
        job.report_lost_service();  // if it is
        natively.store(true, std::memory_order_release);
        opened_files.counts.again.fetch_add(1, std::memory_order_relaxed);
        again_ = std::make_unique<Again>(file_, way_, params_);
      }
    }
    if (again_ != nullptr) {
      if (!again_->advance()) return false;
      moved_ = again_->moved();
      if (again_->error() != 0) error = file_error_code(again_->error());
    }
    if (const int code = deliver(); error == MPI_SUCCESS) error = code;
  } catch (const std::exception&) {
    return false;  // without memory: the next round tries again
  }
  if (error != MPI_SUCCESS) opened_files.counts.failed.fetch_add(1, std::memory_order_relaxed);
  again_.reset();
  staging_ = {};
  packed_.reset();
  offpath_op_free(std::exchange(op_, nullptr));
  counted_ = false;
  file_->under_way().fetch_sub(1, std::memory_order_release);
  return true;
}

}  // namespace offpath::mpi
