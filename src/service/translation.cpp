// SPDX-License-Identifier: BSD-3-Clause
#include "service/translation.hpp"

namespace offpath::service {
namespace {

base::Status translate_steps(const std::vector<session::ScalarStepRecord>& records,
                             std::vector<kernels::ScalarStep>& out) {
  out.reserve(records.size());
  for (const session::ScalarStepRecord& record : records) {
    if (record.op < OFFPATH_SCALAR_COPY || record.op > OFFPATH_SCALAR_SQRT) {
      return base::Status::error(OFFPATH_ERR_ARGUMENT, "unknown scalar operator %u in a program", record.op);
    }
    out.push_back({static_cast<offpath_scalar_op_t>(record.op), record.result, record.left, record.right});
  }
  return {};
}

}  // namespace

base::Result<ops::Program> translate(session::ProgramArguments arguments) {
  const session::ProgramRecord& head = arguments.head;
  ops::Program out;
  out.scalars = head.scalars;
  out.reduce_first = head.reduce_first;
  out.reduce_count = head.reduce_count;
  if ((head.crossing & session::kNamesCrossing) != 0) {
    out.crossing = {std::move(arguments.in), std::move(arguments.out), (head.crossing & session::kMatricesCross) != 0};
  }
  for (const session::MatrixRecord& record : arguments.matrices) {
    out.matrices.push_back({{record.rows, record.entries, record.columns_count},
                            record.first_row,
                            record.offsets,
                            record.columns,
                            record.values,
                            record.source,
                            record.target});
  }
  kernels::VectorProgram& vector = out.vector;
  vector.rows = head.rows;
  vector.scalars = head.scalars_count;
  vector.vectors = head.vectors_count;
  base::Status status = translate_steps(arguments.before, vector.before);
  if (status.ok()) status = translate_steps(arguments.after, vector.after);
  if (!status.ok()) return status;
  auto term = arguments.terms.begin();
  for (const session::StatementRecord& record : arguments.statements) {
    if (record.kind != OFFPATH_UPDATE && record.kind != OFFPATH_DOT) {
      return base::Status::error(OFFPATH_ERR_ARGUMENT, "unknown statement kind %u in a program", record.kind);
    }
    kernels::Statement& statement = vector.statements.emplace_back();
    statement.kind = static_cast<offpath_statement_kind_t>(record.kind);
    statement.target = record.target;
    for (uint32_t i = 0; i < record.terms_count; ++i, ++term) statement.terms.push_back({term->scalar, term->vector});
  }
  out.vectors = std::move(arguments.vectors);
  return out;
}

}  // namespace offpath::service
