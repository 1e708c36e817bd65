// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/preference.hpp"

#include "mpi/native/native.hpp"

#include <algorithm>

namespace offpath::mpi {
namespace {

constexpr const char* kInfoKey = "offpath_path";
constexpr uint8_t kNothing = UINT8_MAX;

}  // namespace

std::optional<Preference> parse_preference(std::string_view word) {
  if (word == "auto") return Preference::automatic;
  if (word == "host") return Preference::host;
  if (word == "dpu") return Preference::dpu;
  if (word == "freeze") return Preference::freeze;
  return std::nullopt;
}

std::optional<Preference> read_preference(MPI_Info info) {
  char value[16] = "";
  int given = 0;
  if (info == MPI_INFO_NULL) return std::nullopt;
  if (native.Info_get(info, kInfoKey, sizeof(value) - 1, value, &given) != MPI_SUCCESS || given == 0) {
    return std::nullopt;
  }
  return parse_preference(value);
}

std::string read_compress(MPI_Info info) {
  char value[64] = "";
  int given = 0;
  if (info == MPI_INFO_NULL) return {};
  const int code = native.Info_get(info, "offpath_compress", sizeof(value) - 1, value, &given);
  return code == MPI_SUCCESS && given != 0 ? value : "";
}

std::optional<Preference> agree_on_preference(MPI_Comm comm, std::optional<Preference> own) {
  uint8_t word = own ? static_cast<uint8_t>(*own) : kNothing;
  if (native.Bcast(&word, 1, MPI_BYTE, 0, comm) != MPI_SUCCESS || word == kNothing) return std::nullopt;
  return static_cast<Preference>(word);
}

base::Result<NamedPreferences> NamedPreferences::parse(std::string_view text) {
  NamedPreferences parsed;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    const size_t equals = entry.rfind('=');  // names may hold one
    const auto preference =
        equals == std::string_view::npos ? std::nullopt : parse_preference(entry.substr(equals + 1));
    if (!preference || equals == 0) {
      return base::Status::error(OFFPATH_ERR_ARGUMENT,
                                 "OFFPATH_MPI_COMM_POLICY holds '%.*s' (it takes NAME=host, dpu, auto or freeze, "
                                 "separated by commas). Correct it",
                                 static_cast<int>(std::min<size_t>(entry.size(), 60)), entry.data());
    }
    parsed.entries_.push_back({std::string(entry.substr(0, equals)), *preference});
  }
  return parsed;
}

std::optional<Preference> NamedPreferences::find(std::string_view name) const {
  const auto found =
      std::find_if(entries_.rbegin(), entries_.rend(), [name](const Entry& each) { return each.name == name; });
  return found == entries_.rend() ? std::nullopt : std::optional(found->preference);
}

}  // namespace offpath::mpi
