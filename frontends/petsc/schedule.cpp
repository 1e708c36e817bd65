// SPDX-License-Identifier: BSD-3-Clause
#include "petsc/schedule.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>

namespace offpath::petsc {

namespace {
constexpr const char* kHeading = "offpath-schedule 1";
constexpr const char* kStepNames[] = {"", "copy", "add", "subtract", "multiply", "divide", "sqrt"};  // by operator
static_assert(OFFPATH_SCALAR_COPY == 1 && OFFPATH_SCALAR_SQRT == 6);
}  // namespace

void Schedule::Program::put_into(offpath_program_t& program) const {
  program.before = before.data();
  program.before_count = static_cast<uint32_t>(before.size());
  program.statements = statements.data();
  program.statements_count = static_cast<uint32_t>(statements.size());
  program.after = after.data();
  program.after_count = static_cast<uint32_t>(after.size());
  program.reduce_first = reduce_first;
  program.reduce_count = reduce_count;
}

// One line after the other, up to the first that is wrong.
class Schedule::Reader {
 public:
  explicit Reader(Schedule& out) : out_(out) {}
  const char* problem() const { return problem_; }  // null: none
  bool is_in_program() const { return program_ != nullptr; }

  void take(const std::string& line) {
    std::istringstream words(line);
    words_.assign(std::istream_iterator<std::string>(words), {});
    if (words_.empty()) return;
    if (program_ != nullptr) return take_in_program();
    const std::string& word = words_[0];
    if (word == "vector") {
      out_.vectors.push_back(at(1));
    } else if (word == "scalar") {
      out_.scalars.push_back(at(1));
      out_.values.push_back(strtod(at(2).c_str(), nullptr));
    } else if (word == "take") {
      out_.taken.push_back(scalar(1));
    } else if (word == "result") {
      out_.result_is_there = at(1) == "dpu";
    } else if (word == "setup") {
      section_ = &out_.setup;
    } else if (word == "turn") {
      section_ = &out_.turns[at(1) == "0" ? 0 : 1];
    } else if (word == "precondition" || word == "matvec") {
      add(word == "matvec" ? What::multiply : What::precondition, vector(1), vector(2));
    } else if (word == "wait") {
      add(What::wait, 0, 0);
    } else if (word == "test" || word == "test-next") {
      add(What::test, word == "test" ? 0 : 1, scalar(1));
    } else if (word == "here" || word == "there") {
      add(word == "here" ? What::here : What::there, 0, 0);
      if (section_ != nullptr) program_ = &section_->back().program;
    } else if (word != "name") {
      fail("a word that it does not know");
    }
  }

 private:
  void take_in_program() {
    Program& program = *program_;
    const std::string& word = words_[0];
    if (word == "end") {
      for (size_t i = 0; i < program.statements.size(); ++i) program.statements[i].terms = program.terms[i].data();
      program_ = nullptr;
    } else if (word == "in" || word == "out") {
      for (size_t i = 1; i < words_.size(); ++i) (word == "in" ? program.in : program.out).push_back(vector(i));
    } else if (word == "give") {
      for (size_t i = 1; i < words_.size(); ++i) program.given.push_back(scalar(i));
    } else if (word == "sum") {
      program.reduce_first = scalar(1);
      program.reduce_count = static_cast<uint32_t>(words_.size() - 1);
      for (size_t i = 1; i < words_.size(); ++i) {
        if (scalar(i) != program.reduce_first + i - 1) fail("sums that do not lie side by side");
      }
    } else if (word == "dot") {
      add(program, OFFPATH_DOT, scalar(1), {{0, vector(2)}, {0, vector(3)}});
    } else if (word == "update") {
      std::vector<offpath_term_t> terms;
      for (size_t i = 2; i < words_.size(); i += 2) terms.push_back({scalar(i), vector(i + 1)});
      add(program, OFFPATH_UPDATE, vector(1), std::move(terms));
    } else if (word == "after") {
      program.after.push_back(step(1));
    } else {
      program.before.push_back(step(0));
    }
  }

  static void add(Program& program, offpath_statement_kind_t kind, uint32_t target, std::vector<offpath_term_t> terms) {
    program.statements.push_back({kind, target, static_cast<uint32_t>(terms.size()), nullptr});
    program.terms.push_back(std::move(terms));
  }
  void add(What what, uint32_t target, uint32_t source) {
    if (section_ == nullptr) return fail("something to be done before `setup`");
    section_->push_back({what, target, source, {}});
  }
  offpath_scalar_step_t step(size_t i) {
    const auto found = std::find(std::begin(kStepNames) + 1, std::end(kStepNames), at(i));
    if (found == std::end(kStepNames)) fail("a word that it does not know");
    if (found == std::end(kStepNames)) return {};
    return {static_cast<offpath_scalar_op_t>(found - std::begin(kStepNames)), scalar(i + 1), scalar(i + 2),
            scalar(i + 3)};
  }

  void fail(const char* problem) {
    if (problem_ == nullptr) problem_ = problem;
  }
  std::string at(size_t i) {
    if (i >= words_.size()) fail("too few words");
    return i >= words_.size() ? "" : words_[i];
  }
  uint32_t find(const std::vector<std::string>& names, const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) fail("a name that was not declared");
    return static_cast<uint32_t>(found - names.begin());
  }
  uint32_t vector(size_t i) { return find(out_.vectors, at(i)); }
  uint32_t scalar(size_t i) { return find(out_.scalars, at(i)); }

  Schedule& out_;
  std::vector<std::string> words_;
  std::vector<Action>* section_ = nullptr;
  Program* program_ = nullptr;
  const char* problem_ = nullptr;
};

uint32_t Schedule::vector(const std::string& name) const {
  return static_cast<uint32_t>(std::find(vectors.begin(), vectors.end(), name) - vectors.begin());
}

std::string Schedule::read(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line) || line != kHeading) return std::string("line 1 is not '") + kHeading + "'";
  Reader reader(*this);
  for (int number = 2; std::getline(lines, line); ++number) {
    reader.take(line);
    if (reader.problem() != nullptr) return "line " + std::to_string(number) + " has " + reader.problem();
  }
  const bool is_whole = !reader.is_in_program() && vector("x") < vectors.size() && vector("b") < vectors.size() &&
                        !scalars.empty() && !turns[0].empty() && !turns[1].empty();
  return is_whole ? "" : "it ends too early";
}

}  // namespace offpath::petsc
