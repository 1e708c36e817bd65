// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/learned.hpp"

namespace offpath::mpi {

void Learned::add(policy::Collective collective, uint32_t bits, uint32_t nodes, const policy::Adaptation& adaptation) {
  using policy::Path;
  if (adaptation.period_ns(adaptation.home()) == 0 || adaptation.home_why() == policy::Why::lost) return;
  policy::Row row{collective, adaptation.home(), nodes, bits == 0 ? 0 : uint64_t{1} << (bits - 1),
                  bits >= 64 ? policy::kUnlimitedBytes : uint64_t{1} << bits};
  const Entry entry{
      adaptation.home(),  adaptation.home_why(), adaptation.period_ns(Path::host), adaptation.period_ns(Path::dpu),
      adaptation.turns(), adaptation.switches(), adaptation.explored_turns()};
  std::lock_guard lock(mutex_);
  Entry& known = entries_.try_emplace(policy::range_text(row), entry).first->second;
  if (entry.turns > known.turns) known = entry;
}

attach::JsonObject Learned::json() const {
  std::lock_guard lock(mutex_);
  attach::JsonObject all;
  for (const auto& [name, entry] : entries_) {
    attach::JsonObject one;
    one.text("path", entry.path == policy::Path::dpu ? "dpu" : "host").text("why", why_name(entry.why));
    one.number("host_ns", entry.host_ns).number("dpu_ns", entry.dpu_ns).number("turns_count", entry.turns);
    one.number("switches_count", entry.switches).number("explored_count", entry.explored);
    all.object(name.c_str(), one);
  }
  return all;
}

}  // namespace offpath::mpi
