// SPDX-License-Identifier: BSD-3-Clause
#include "service/translation.hpp"

namespace offpath::service {
namespace {

graph::Place translate_place(const session::BlockRecord& record) {
  return {record.address, 0, record.layout == 0 ? graph::kClient : record.layout - 1};
}

std::vector<graph::Layout> translate_layouts(const std::vector<session::LayoutRecord>& records,
                                             const std::vector<session::RangeRecord>& ranges) {
  std::vector<graph::Layout> out;
  out.reserve(records.size());
  size_t next_range = 0;
  for (const session::LayoutRecord& record : records) {
    graph::Layout& layout = out.emplace_back();
    layout.size_bytes = record.size_bytes;
    layout.extent_bytes = record.extent_bytes;
    layout.ranges.reserve(record.ranges_count);
    for (uint32_t i = 0; i < record.ranges_count; ++i, ++next_range) {
      layout.ranges.push_back({ranges[next_range].offset, ranges[next_range].bytes});
    }
  }
  return out;
}

std::vector<ops::Block> translate_blocks(const std::vector<session::BlockRecord>& records) {
  std::vector<ops::Block> out;
  out.reserve(records.size());
  for (const session::BlockRecord& record : records) {
    out.push_back({record.peer, record.tag, translate_place(record), record.bytes});
  }
  return out;
}

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

base::Result<ops::Collective> translate(const session::CollectiveArguments& arguments, bool copy_own_blocks) {
  const session::CollectiveRecord& head = arguments.head;
  if (head.kind < OFFPATH_EXCHANGE || head.kind > OFFPATH_EXSCAN || head.algorithm > OFFPATH_ALGORITHM_DISSEMINATION ||
      head.op > OFFPATH_OP_MAXLOC || head.element > OFFPATH_ELEMENT_F64_F64) {
    return base::Status::error(OFFPATH_ERR_ARGUMENT,
                               "unknown collective: kind %u, algorithm %u, operator %u, element type %u", head.kind,
                               head.algorithm, head.op, head.element);
  }
  ops::Collective out;
  out.kind = static_cast<offpath_collective_kind_t>(head.kind);
  out.algorithm = static_cast<offpath_algorithm_t>(head.algorithm);
  out.root = head.root;
  out.reduction = {static_cast<offpath_operator_t>(head.op), static_cast<offpath_element_t>(head.element)};
  out.send = translate_blocks(arguments.send);
  out.recv = translate_blocks(arguments.recv);
  out.counts_bytes = arguments.counts_bytes;
  out.copy_own_blocks = copy_own_blocks;
  out.layouts = translate_layouts(arguments.layouts, arguments.ranges);
  return out;
}

base::Result<ops::onesided::Remote> translate(session::RemoteArguments arguments, uint64_t window) {
  auto decoded = remote::decode(arguments.wanted, remote::Data::may_follow);
  if (!decoded.ok()) return decoded.status();
  if (decoded->wanted.window != window) {
    return base::Status::error(OFFPATH_ERR_ARGUMENT, "a one-sided operation on window %llu is about window %llu",
                               static_cast<unsigned long long>(window),
                               static_cast<unsigned long long>(decoded->wanted.window));
  }
  return ops::onesided::Remote{.body = std::move(arguments.wanted),
                               .wanted = std::move(decoded->wanted),
                               .has_data = !decoded->data.empty(),
                               .target = arguments.head.target,
                               .send = translate_place(arguments.head.send),
                               .result = translate_place(arguments.head.result),
                               .layouts = translate_layouts(arguments.layouts, arguments.ranges)};
}

base::Result<ops::Program> translate(session::ProgramArguments arguments) {
  const session::ProgramRecord& head = arguments.head;
  ops::Program out;
  out.scalars = head.scalars;
  out.reduce_first = head.reduce_first;
  out.reduce_count = head.reduce_count;
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
