// SPDX-License-Identifier: BSD-3-Clause
#include "attach/directory.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

namespace offpath::attach {
namespace {

struct Report {
  std::array<std::byte, 20> worker;
  uint32_t bytes;
};

}  // namespace

Directory::Directory(std::span<const Address> addresses) {
  std::map<std::string_view, uint32_t> known;
  std::vector<const Address*> found;
  for (const Address& each : addresses) {
    const std::string_view text(reinterpret_cast<const char*>(each.data.data()), each.bytes);
    const auto [same, is_new] = known.try_emplace(text, static_cast<uint32_t>(found.size()));
    if (is_new) found.push_back(&each);
    stride_ = std::max(stride_, each.bytes);
    number_of_.push_back(same->second);
  }
  table_.resize(found.size() * stride_);
  for (size_t i = 0; i < found.size(); ++i) {
    std::copy_n(found[i]->data.begin(), found[i]->bytes, table_.begin() + static_cast<ptrdiff_t>(i * stride_));
  }
}

// First all tell what is short, then of each worker's processes the first one its address.
bool Directory::gather(const Exchange& team, const Address& own, Directory* out, int* without) {
  Report report{{}, own.bytes};
  std::copy_n(own.data.begin(), report.worker.size(), report.worker.begin());
  std::vector<Report> reports;
  if (!team.gather(report, &reports)) return false;
  const auto none = std::find_if(reports.begin(), reports.end(), [](const Report& one) { return one.bytes == 0; });
  *without = none == reports.end() ? -1 : static_cast<int>(none - reports.begin());
  if (*without >= 0) return true;
  *out = {};
  std::map<std::array<std::byte, 20>, uint32_t> known;
  std::vector<uint8_t> speaks(reports.size());
  for (size_t process = 0; process < reports.size(); ++process) {
    const auto [same, is_new] = known.try_emplace(reports[process].worker, static_cast<uint32_t>(known.size()));
    speaks[process] = is_new ? 1 : 0;
    out->stride_ = std::max(out->stride_, reports[process].bytes);
    out->number_of_.push_back(same->second);
  }
  out->table_.resize(known.size() * out->stride_);
  return team.gather_some(own.data.data(), out->stride_, speaks, out->table_.data());
}

bool Directory::is_whole() const {
  if (stride_ > kUnreachableBytes) return true;
  const auto service_of = [this](uint32_t number) { return address(number).first(std::min(stride_, kServiceBytes)); };
  for (uint32_t number = 1; number < addresses_count(); ++number) {
    if (!std::ranges::equal(service_of(number), service_of(0))) return false;
  }
  return true;
}

Directory Directory::of(std::span<const int> processes) const {
  Directory out;
  out.stride_ = stride_;
  constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> there(addresses_count(), kNone);
  for (const int process : processes) {
    const uint32_t number = number_of_[static_cast<size_t>(process)];
    if (there[number] == kNone) {
      there[number] = out.addresses_count();
      const auto bytes = address(number);
      out.table_.insert(out.table_.end(), bytes.begin(), bytes.end());
    }
    out.number_of_.push_back(there[number]);
  }
  return out;
}

}  // namespace offpath::attach
