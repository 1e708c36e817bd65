// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/device/info.hpp"

#include "mpi/device/call.hpp"
#include "mpi/device/handles.hpp"

#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace offpath::regions {
namespace {

struct Info {
  std::mutex mutex;
  std::map<std::string, std::string> values;
};

Handles<MPI_Info, Info> infos;

}  // namespace

Crossing crossing_of(MPI_Info info) {
  const auto held = info == MPI_INFO_NULL ? nullptr : infos.find(info);
  if (held == nullptr) return Crossing::unsaid;
  std::lock_guard lock(held->mutex);
  const auto value = held->values.find(kCrossKey);
  if (value == held->values.end()) return Crossing::unsaid;
  return value->second == "1" ? Crossing::on : Crossing::off;
}

extern "C" {

int MPI_Info_create(MPI_Info* info) { return infos.add(std::make_shared<Info>(), info) ? MPI_SUCCESS : MPI_ERR_NO_MEM; }

int MPI_Info_free(MPI_Info* info) {
  if (infos.remove(*info) == nullptr) return MPI_ERR_INFO;
  *info = MPI_INFO_NULL;
  return MPI_SUCCESS;
}

int MPI_Info_set(MPI_Info info, const char* key, const char* value) {
  const auto held = infos.find(info);
  if (held == nullptr) return MPI_ERR_INFO;
  if (key == nullptr || strlen(key) > MPI_MAX_INFO_KEY || *key == '\0') return MPI_ERR_INFO_KEY;
  if (value == nullptr || strlen(value) > MPI_MAX_INFO_VAL) return MPI_ERR_INFO_VALUE;
  std::lock_guard lock(held->mutex);
  held->values[key] = value;
  return MPI_SUCCESS;
}

int MPI_Info_delete(MPI_Info info, const char* key) {
  const auto held = infos.find(info);
  if (held == nullptr) return MPI_ERR_INFO;
  std::lock_guard lock(held->mutex);
  return held->values.erase(key) != 0 ? MPI_SUCCESS : MPI_ERR_INFO_NOKEY;
}

int MPI_Info_get(MPI_Info info, const char* key, int capacity, char* text, int* flag) {
  const auto held = infos.find(info);
  if (held == nullptr) return MPI_ERR_INFO;
  std::lock_guard lock(held->mutex);
  const auto value = held->values.find(key);
  *flag = value == held->values.end() || capacity < 0 ? 0 : 1;
  if (*flag == 0) return MPI_SUCCESS;
  const size_t length = value->second.copy(text, static_cast<size_t>(capacity));
  text[length] = '\0';  // MPI gives `capacity` characters and one more
  return MPI_SUCCESS;
}

int MPI_Comm_set_info(MPI_Comm comm, MPI_Info info) {
  Arguments arguments = arguments_of(Call::comm_set_info, comm);
  arguments.flag = static_cast<int32_t>(crossing_of(info));
  return call(arguments, nullptr);
}

}  // extern "C"
}  // namespace offpath::regions
