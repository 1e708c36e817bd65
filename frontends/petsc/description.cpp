// SPDX-License-Identifier: BSD-3-Clause
#include "petsc/description.hpp"

namespace offpath::petsc {
namespace {

std::string text_of(const offpath_statement_t& statement, const Names& names) {
  const std::span terms(statement.terms, statement.terms_count);
  if (statement.kind == OFFPATH_DOT) {
    return std::string(names.scalars[statement.target]) + " = (" + names.vectors[terms[0].vector] + ", " +
           names.vectors[terms[1].vector] + ")";
  }
  std::string sum;
  for (const offpath_term_t& term : terms) {
    const std::string factor = names.scalars[term.scalar];
    sum += (sum.empty() ? "" : " + ") + (factor == "1" ? "" : factor + " * ") + names.vectors[term.vector];
  }
  return std::string(names.vectors[statement.target]) + " = " + (sum.empty() ? "0" : sum);
}

std::string text_of(const offpath_scalar_step_t& step, const Names& names) {
  const std::string result = names.scalars[step.result], left = names.scalars[step.left];
  static constexpr const char* kSigns[] = {"", "", "+", "-", "*", "/"};  // by operator
  if (step.op == OFFPATH_SCALAR_COPY) return result + " = " + left;
  if (step.op == OFFPATH_SCALAR_SQRT) return result + " = sqrt(" + left + ")";
  return result + " = " + left + " " + kSigns[step.op] + " " + names.scalars[step.right];
}

}  // namespace

std::string text_of(const offpath_program_t& program, const Names& names) {
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : "; ") + text; };
  for (const auto& step : std::span(program.before, program.before_count)) add(text_of(step, names));
  for (const auto& statement : std::span(program.statements, program.statements_count)) add(text_of(statement, names));
  if (program.reduce_count > 0) {
    std::string sums;
    for (uint32_t i = 0; i < program.reduce_count; ++i) {
      sums += std::string(i == 0 ? "sum " : ", ") + names.scalars[program.reduce_first + i];
    }
    add(sums);
  }
  for (const auto& step : std::span(program.after, program.after_count)) add(text_of(step, names));
  return out;
}

}  // namespace offpath::petsc
