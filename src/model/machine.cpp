// SPDX-License-Identifier: BSD-3-Clause
#include "model/machine.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

namespace offpath::model {
namespace {

using base::Status;
using nlohmann::json;

// A number may be given as it is or, as calibrations write it, as {"median": ..., "min": ...}.
const json* number_in(const json& group, const char* name) {
  const auto it = group.find(name);
  if (it == group.end()) return nullptr;
  if (!it->is_object()) return it->is_number() ? &*it : nullptr;
  const auto median = it->find("median");
  return median != it->end() && median->is_number() ? &*median : nullptr;
}

class Reader {
 public:
  Reader(const json& file, const char* group) : group_(group) {
    static const json nothing = json::object();
    const auto it = file.find(group);
    json_ = it != file.end() && it->is_object() ? &*it : &nothing;
  }

  Reader& number(const char* name, double lowest, double highest, double& value) {
    if (!status_.ok()) return *this;
    const json* found = number_in(*json_, name);
    if (found == nullptr) {
      status_ =
          Status::error(OFFPATH_ERR_ARGUMENT,
                        "machine file: %s.%s is missing (the model needs it). Run offpath calibrate", group_, name);
      return *this;
    }
    value = found->get<double>();
    if (!std::isfinite(value) || value < lowest || value > highest) {
      status_ = Status::error(OFFPATH_ERR_ARGUMENT,
                              "machine file: %s.%s is %g (it should be %g to %g). Correct it, or run offpath calibrate",
                              group_, name, value, lowest, highest);
    }
    return *this;
  }

  Reader& flag(const char* name, bool& value) {
    const auto it = json_->find(name);
    if (it != json_->end() && it->is_boolean()) value = it->get<bool>();
    return *this;
  }

  const Status& status() const { return status_; }

 private:
  const char* group_;
  const json* json_;
  Status status_;
};

constexpr double kNs = 1e9, kPerByte = 1e4, kBytes = 1e12, kSpeed = 1e5;
constexpr double kServiceChunk = 1 << 24;  // simulated engines have buffers

}  // namespace

base::Result<Machine> read_machine(const json& file) {
  Machine machine;
  if (!file.is_object() || file.value("format", json()) != "offpath-machine") {
    return Status::error(OFFPATH_ERR_ARGUMENT,
                         "this is no machine file (\"format\" is not offpath-machine). Run offpath calibrate");
  }
  if (!file.contains("version") || file["version"] != 1) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "machine file: only version 1 is known. Run offpath calibrate again");
  }
  Native& native = machine.native;
  Service& service = machine.service;
  Reader network(file, "network"), memory(file, "memory"), mpi(file, "native"), dpu(file, "service");
  network.number("rate_bytes_per_ns", 1e-7, kSpeed, machine.rate_bytes_per_ns)
      .number("peak_bytes_per_ns", 1e-6, kSpeed, machine.peak_bytes_per_ns)
      .number("burst_bytes", 0, kBytes, machine.burst_bytes)
      .number("latency_ns", 0, kNs, machine.latency_ns)
      .number("wire_efficiency", 0.1, 1, machine.wire_efficiency)
      .number("header_bytes", 0, 65536, machine.header_bytes);
  memory.number("copy_bytes_per_ns", 1e-6, kSpeed, machine.copy_bytes_per_ns)
      .number("cma_bytes_per_ns", 1e-6, kSpeed, machine.cma_bytes_per_ns)
      .number("reduce_bytes_per_ns", 1e-6, kSpeed, machine.reduce_bytes_per_ns);
  mpi.number("eager_bytes", 0, kBytes, native.eager_bytes)
      .number("chunk_bytes", 64, kBytes, native.chunk_bytes)
      .number("window_bytes", 64, kBytes, native.window_bytes)
      .number("post_ns", 0, kNs, native.post_ns)
      .number("message_ns", 0, kNs, native.message_ns)
      .number("send_ns_per_byte", 0, kPerByte, native.send_ns_per_byte)
      .number("receive_ns_per_byte", 0, kPerByte, native.receive_ns_per_byte)
      .number("crossing_efficiency", 0.1, 1, native.crossing_efficiency);
  dpu.flag("own_cores", service.own_cores)
      .number("speed", 1e-3, 1e3, service.speed)
      .number("chunk_bytes", 64, kServiceChunk, service.chunk_bytes)
      .number("window_bytes", 64, kBytes, service.window_bytes)
      .number("post_ns", 0, kNs, service.post_ns)
      .number("operation_ns", 0, kNs, service.operation_ns)
      .number("step_ns", 0, kNs, service.step_ns)
      .number("message_ns", 0, kNs, service.message_ns)
      .number("send_ns_per_byte", 0, kPerByte, service.send_ns_per_byte)
      .number("receive_ns_per_byte", 0, kPerByte, service.receive_ns_per_byte)
      .number("wake_ns", 0, kNs, service.wake_ns)
      .number("host_wake_ns", 0, kNs, service.host_wake_ns)
      .number("crossing_efficiency", 0.1, 1, service.crossing_efficiency);
  for (const Reader* reader : {&network, &memory, &mpi, &dpu}) {
    if (!reader->status().ok()) return reader->status();
  }
  if (file.contains("compression")) {  // what a user asks about; no calibration writes it
    Compression& compression = machine.compression;
    Reader codec(file, "compression");
    codec.number("left", 1e-3, 1, compression.left)
        .number("encode_ns_per_byte", 0, kPerByte, compression.encode_ns_per_byte)
        .number("decode_ns_per_byte", 0, kPerByte, compression.decode_ns_per_byte);
    if (!codec.status().ok()) return codec.status();
  }
  const json& family = file["native"].value("family", json("openmpi"));
  if (!family.is_string() || (family != "openmpi" && family != "mpich")) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "machine file: native.family is not known. Give openmpi or mpich");
  }
  native.family = family.get<std::string>();
  return machine;
}

}  // namespace offpath::model
