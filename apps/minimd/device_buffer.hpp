// SPDX-License-Identifier: BSD-3-Clause
// Memory of a device that grows as it is needed, and copies between it and the host.
#pragma once

#include <cstdlib>

#include <omp.h>

namespace minimd {

template <class T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(int device) : device_(device) {}
  ~DeviceBuffer() { omp_target_free(at_, device_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  // What it held is lost if it grows. Without memory there is no going on, as with `new`.
  void reserve(std::size_t count) {
    if (count <= capacity_) return;
    omp_target_free(at_, device_);
    capacity_ = count + count / 4;
    at_ = static_cast<T*>(omp_target_alloc(capacity_ * sizeof(T), device_));
    if (!at_) std::abort();
  }
  // From `first` on, as elements of the device.
  void put(const T* from, std::size_t count, std::size_t first = 0) {
    if (count) copy(at_, from, count, first * sizeof(T), 0, device_, omp_get_initial_device());
  }
  void get(T* to, std::size_t count, std::size_t first = 0) const {
    if (count) copy(to, at_, count, 0, first * sizeof(T), omp_get_initial_device(), device_);
  }
  T* at() const { return at_; }
  std::size_t capacity() const { return capacity_; }

 private:
  static void copy(T* to, const T* from, std::size_t count, std::size_t to_offset, std::size_t from_offset,
                   int to_device, int from_device) {
    if (omp_target_memcpy(to, const_cast<T*>(from), count * sizeof(T), to_offset, from_offset, to_device, from_device))
      std::abort();
  }

  const int device_;
  T* at_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace minimd
