// SPDX-License-Identifier: BSD-3-Clause
// offpath-sites: reads [[FILE, [OFFSET, ...]], ...] on stdin and writes, in that order, a list for each file: of each offset its
// frames and symbol (sites.hpp). A program of its own, as it reads files that anybody may have damaged.
#include "sites/sites.hpp"

#include <nlohmann/json.hpp>

#include <iostream>
#include <iterator>

namespace {

using nlohmann::json;

json said(const offpath::sites::Site& site) {
  json frames = json::array();
  for (const auto& each : site.frames) frames.push_back({each.function, each.file, each.line});
  return {{"frames", std::move(frames)}, {"symbol", site.symbol}, {"symbol_offset", site.symbol_offset}};
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  try {
    json answer = json::array();
    for (const auto& [path, offsets] :
         json::parse(text).get<std::vector<std::pair<std::string, std::vector<uint64_t>>>>()) {
      const offpath::sites::Object object(path);
      json found = json::array();
      for (const uint64_t offset : offsets) found.push_back(said(object.find(offset)));
      answer.push_back(std::move(found));
    }
    std::cout << answer.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
  } catch (const json::exception& error) {
    std::cerr << "offpath-sites: the question makes no sense (" << error.what()
              << "). Ask [[FILE, [OFFSET, ...]], ...]\n";
    return 2;
  }
  return 0;
}
