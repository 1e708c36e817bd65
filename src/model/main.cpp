// SPDX-License-Identifier: BSD-3-Clause
// offpath-model: one request on stdin, its answer on stdout (job_json.hpp). What is wrong with the request:
// {"error": "one line"}, exit status 2.
#include "model/job_json.hpp"

#include <iostream>
#include <iterator>

int main() {
  using nlohmann::json;
  std::ios::sync_with_stdio(false);
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const json request = json::parse(text, nullptr, false);
  const auto result = offpath::model::answer(request);
  const json said = result.ok() ? result.value() : json{{"error", result.status().text()}};
  // What is quoted may have been cut within a character.
  std::cout << said.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
  return result.ok() ? 0 : 2;
}
