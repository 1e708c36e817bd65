// SPDX-License-Identifier: BSD-3-Clause
// The executor's end of device/upcall.h.
#include "device/upcall.h"

#include "executor/executor.hpp"

using offpath::executor::the_executor;

namespace {
std::span<const offpath_span_t> spans(const offpath_span_t* first, uint32_t count) {
  return first == nullptr ? std::span<const offpath_span_t>() : std::span(first, count);
}
}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED uint64_t offpath_upcall_post(uint32_t code, const void* args, uint32_t args_bytes,
                                      const offpath_span_t* inputs, uint32_t input_count, const offpath_span_t* outputs,
                                      uint32_t output_count) {
  return the_executor().upcalls().post(code, {static_cast<const uint8_t*>(args), args == nullptr ? 0 : args_bytes},
                                       spans(inputs, input_count), spans(outputs, output_count));
}

EXPORTED int offpath_upcall_test(uint64_t id, int32_t* status) {
  int32_t value = OFFPATH_OK;
  const bool answered = the_executor().upcalls().test(id, value);
  if (answered && status != nullptr) *status = value;
  return answered ? 1 : 0;
}

EXPORTED int32_t offpath_upcall_wait(uint64_t id) { return the_executor().upcalls().wait(id); }

EXPORTED int32_t offpath_upcall(uint32_t code, const void* args, uint32_t args_bytes, const offpath_span_t* inputs,
                                uint32_t input_count, const offpath_span_t* outputs, uint32_t output_count) {
  const uint64_t id = offpath_upcall_post(code, args, args_bytes, inputs, input_count, outputs, output_count);
  return id == 0 ? OFFPATH_ERR_ARGUMENT : offpath_upcall_wait(id);
}

// In the place of the OpenMP library's, to which every process is the host.
EXPORTED int omp_get_device_num(void) { return the_executor().number(); }

EXPORTED int32_t offpath_device_shares_memory(void) { return the_executor().upcalls().shares_memory() ? 1 : 0; }
