// SPDX-License-Identifier: BSD-3-Clause
#include "device/starter.hpp"

#include "base/bytes.hpp"
#include "session/dpus.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>

namespace offpath::device {

using base::Result;
using base::Status;

namespace {

constexpr uint32_t kMostWorkers = 64;  // and executors
constexpr size_t kMostCoresText = 200;
constexpr size_t kMostFolderText = 400;
constexpr const char* kSlash = "%2F";

bool is_core_list(const std::string& text) {
  return !text.empty() && text.size() <= kMostCoresText && text.find_first_not_of("0123456789-,") == std::string::npos;
}

bool is_folder(const std::string& text) {
  const auto is_plain = [](unsigned char c) { return isalnum(c) != 0 || strchr("_./-", c) != nullptr; };
  return !text.empty() && text[0] == '/' && text.size() <= kMostFolderText &&
         std::all_of(text.begin(), text.end(), is_plain);
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

bool take_count(const std::string& value, uint32_t& count) {
  const auto parsed = std::from_chars(value.data(), value.data() + value.size(), count);
  return parsed.ec == std::errc() && parsed.ptr == value.data() + value.size() && count >= 1 && count <= kMostWorkers;
}

// "workers=N", "cores=LIST", "share" and so on into the wishes.
bool take(const std::string& word, Wishes& wishes) {
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (name == "workers") return take_count(value, wishes.workers);
  if (name == "executors") return take_count(value, wishes.executors);
  if (name == "functions") {
    wishes.functions = replaced(value, kSlash, "/");
    return is_folder(wishes.functions);
  }
  if (name == "arch") {
    wishes.machine = value == "x86_64" ? kMachineX86_64 : kMachineAArch64;
    return value == "x86_64" || value == "aarch64";
  }
  if (word == "share") return wishes.shares_cores = true;
  std::replace(value.begin(), value.end(), '+', ',');
  wishes.cores = value;
  return name == "cores" && is_core_list(value);
}

// The words of "a/b/c" one by one, until one is refused; that one.
Result<Wishes> wishes_in(const std::string& text) {
  Wishes wishes;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('/', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!take(word, wishes)) {
      return Status::error(
          OFFPATH_ERR_ARGUMENT,
          "'%.60s' is neither workers= or executors=1 to %u nor cores=2+4-7 nor functions=%%2Fa%%2Ffolder "
          "nor share nor arch=aarch64",
          word.c_str(), kMostWorkers);
    }
    begin = end + 1;
  }
  return wishes;
}

}  // namespace

Result<StarterAddress> parse_starter(const std::string& text) {
  StarterAddress address;
  const size_t slash = std::min(text.find('/'), text.size());
  const auto wishes = wishes_in(text.substr(std::min(slash + 1, text.size())));
  if (!wishes.ok())
    return Status::error(OFFPATH_ERR_ARGUMENT, "the DPU '%.80s': %s", text.c_str(), wishes.status().text());
  address.wishes = wishes.value();
  if (parse_address(text.substr(0, slash), address.entry) != nullptr) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "'%.80s' is no DPU. Write HOST:PORT or exec:COMMAND into OFFPATH_DPU",
                         text.c_str());
  }
  return address;
}

Result<std::vector<DeviceEntry>> devices_of(const std::string& dpus) {
  std::vector<DeviceEntry> entries;
  for (const std::string& word : session::unquoted_parts(dpus, ',')) {
    if (word.rfind("exec:", 0) == 0) continue;
    auto address = parse_starter(word);
    if (!address.ok()) return address.status();
    address->entry.name = address->entry.address;
    address->entry.machine = address->wishes.machine;
    entries.push_back(std::move(address->entry));
  }
  return entries;
}

Result<std::string> ask_starter(const std::string& address, const uint8_t (&token)[OFFPATH_TOKEN_BYTES],
                                int timeout_ms) {
  const auto where = parse_starter(address);
  if (!where.ok()) return where.status();
  StartRequest request;
  memcpy(request.token.data(), token, sizeof(token));
  request.wishes = where->wishes;
  const auto answered = introduce(where->entry, Purpose::service, encode_request(request), timeout_ms);
  if (!answered.ok()) return answered.status();
  return decode_answer(answered->answer);
}

std::string encode_request(const StartRequest& request) {
  std::string text(reinterpret_cast<const char*>(request.token.data()), request.token.size());
  if (request.wishes.workers != 0) text += "workers=" + std::to_string(request.wishes.workers) + "/";
  if (request.wishes.executors != 0) text += "executors=" + std::to_string(request.wishes.executors) + "/";
  if (!request.wishes.functions.empty()) text += "functions=" + replaced(request.wishes.functions, "/", kSlash) + "/";
  if (!request.wishes.cores.empty()) text += "cores=" + request.wishes.cores + "/";
  if (request.wishes.shares_cores) text += "share/";
  return text;
}

Result<StartRequest> decode_request(const std::string& text) {
  StartRequest request;
  if (text.size() < request.token.size()) return Status::error(OFFPATH_ERR_ARGUMENT, "a request without a token");
  memcpy(request.token.data(), text.data(), request.token.size());
  auto wishes = wishes_in(text.substr(request.token.size()));
  if (!wishes.ok()) return wishes.status();
  request.wishes = wishes.value();
  return request;
}

std::string encode_answer(const Result<std::string>& answer) {
  std::string text(4, '\0');
  base::ByteWriter(reinterpret_cast<uint8_t*>(text.data())).number(static_cast<int32_t>(answer.status().code()));
  return text + (answer.ok() ? answer.value() : answer.status().text());
}

Result<std::string> decode_answer(const std::string& text) {
  if (text.size() < 4) return Status::error(OFFPATH_ERR_ARGUMENT, "an answer without a status");
  const auto code = base::known_code(base::ByteReader(reinterpret_cast<const uint8_t*>(text.data())).number<int32_t>());
  std::string said = text.substr(4);
  // It may go to the user's terminal.
  std::replace_if(
      said.begin(), said.end(), [](unsigned char c) { return c < 32 || c == 127; }, ' ');
  if (code != OFFPATH_OK) return Status::error(code, "%.200s", said.c_str());
  return said;
}

}  // namespace offpath::device
