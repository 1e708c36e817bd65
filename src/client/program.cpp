// SPDX-License-Identifier: BSD-3-Clause
// Vector programs: the C API's description becomes a record of the session segment.
#include "base/records.hpp"
#include "base/result.hpp"
#include "client/enumerator.hpp"
#include "client/session.hpp"

namespace {

namespace layout = offpath::session;

bool is_missing(const void* array, uint32_t count) { return array == nullptr && count > 0; }

bool is_whole(const offpath_program_t& p) {
  if (p.scalars == nullptr || is_missing(p.vectors, p.vectors_count) || is_missing(p.matrices, p.matrices_count) ||
      is_missing(p.before, p.before_count) || is_missing(p.statements, p.statements_count) ||
      is_missing(p.after, p.after_count)) {
    return false;
  }
  for (const offpath_statement_t& statement : std::span(p.statements, p.statements_count)) {
    if (is_missing(statement.terms, statement.terms_count)) return false;
  }
  return true;
}

uint64_t count_terms(const offpath_program_t& p) {
  uint64_t count = 0;
  for (const offpath_statement_t& statement : std::span(p.statements, p.statements_count)) {
    count += statement.terms_count;
  }
  return count;
}

uint64_t record_bytes(const offpath_program_t& p, const offpath_crossing_t& c, uint32_t team_size) {
  return sizeof(layout::ProgramRecord) + p.vectors_count * sizeof(uint64_t) +
         p.matrices_count * sizeof(layout::MatrixRecord) +
         (uint64_t{p.before_count} + p.after_count) * sizeof(layout::ScalarStepRecord) +
         p.statements_count * sizeof(layout::StatementRecord) + count_terms(p) * sizeof(layout::TermRecord) +
         sizeof(layout::CrossingRecord) + (uint64_t{c.in_count} + c.out_count + team_size) * sizeof(uint32_t);
}

uint64_t address_of(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

void write_steps(offpath::base::RecordWriter& writer, std::span<const offpath_scalar_step_t> steps) {
  for (const offpath_scalar_step_t& step : steps) {
    writer.write(layout::ScalarStepRecord{offpath::client::number_of(step.op), step.result, step.left, step.right});
  }
}

void write_record(const offpath_program_t& p, const offpath_crossing_t& c, uint32_t crossing,
                  std::vector<uint8_t>& out) {
  offpath::base::RecordWriter writer(out);
  writer.write(layout::ProgramRecord{p.rows, address_of(p.scalars), p.scalars_count, p.reduce_first, p.reduce_count,
                                     p.vectors_count, p.matrices_count, p.before_count, p.after_count,
                                     p.statements_count, static_cast<uint32_t>(count_terms(p)), crossing});
  for (const double* vector : std::span(p.vectors, p.vectors_count)) writer.write(address_of(vector));
  for (const offpath_matrix_rows_t& m : std::span(p.matrices, p.matrices_count)) {
    writer.write(layout::MatrixRecord{m.first_row, m.rows, address_of(m.offsets), address_of(m.columns),
                                      address_of(m.values), m.entries, m.columns_count, m.source, m.target});
  }
  write_steps(writer, {p.before, p.before_count});
  write_steps(writer, {p.after, p.after_count});
  const std::span statements(p.statements, p.statements_count);
  for (const offpath_statement_t& statement : statements) {
    writer.write(layout::StatementRecord{offpath::client::number_of(statement.kind), statement.target,
                                         statement.terms_count, 0});
  }
  for (const offpath_statement_t& statement : statements) {
    for (const offpath_term_t& term : std::span(statement.terms, statement.terms_count)) {
      writer.write(layout::TermRecord{term.scalar, term.vector});
    }
  }
  if (crossing == 0) return;
  writer.write(layout::CrossingRecord{c.in_count, c.out_count});
  writer.write_all(std::span(c.in, c.in_count));
  writer.write_all(std::span(c.out, c.out_count));
}

bool is_good(const offpath_crossing_t& c) {
  return c.struct_bytes == sizeof(c) && (c.flags & ~uint32_t{OFFPATH_CROSSING_MATRICES}) == 0 &&
         !is_missing(c.in, c.in_count) && !is_missing(c.out, c.out_count);
}

}  // namespace

extern "C" offpath_status_t offpath_program(offpath_team_t* team, const offpath_program_t* program,
                                            offpath_op_t** out) {
  return offpath_program_crossing(team, program, nullptr, out);
}

extern "C" offpath_status_t offpath_program_crossing(offpath_team_t* team, const offpath_program_t* program,
                                                     const offpath_crossing_t* crossing, offpath_op_t** out) {
  if (team == nullptr || program == nullptr || out == nullptr) return OFFPATH_ERR_ARGUMENT;
  offpath::base::ErrnoGuard guard;
  *out = nullptr;
  offpath_session& session = *team->session;
  if (!session.mine()) return OFFPATH_ERR_STATE;
  if (program->struct_bytes != sizeof(*program) || !is_whole(*program)) return OFFPATH_ERR_ARGUMENT;
  if (crossing != nullptr && !is_good(*crossing)) return OFFPATH_ERR_ARGUMENT;
  const offpath_crossing_t c = crossing == nullptr ? offpath_crossing_t{} : *crossing;
  const uint32_t matrices = (c.flags & OFFPATH_CROSSING_MATRICES) != 0 ? layout::kMatricesCross : 0;
  const uint64_t bytes = record_bytes(*program, c, team->size);
  if (bytes > layout::kSegmentBytes) return OFFPATH_ERR_NO_MEMORY;
  auto op = std::make_unique<offpath_op>(*team, layout::OpKind::program, "program");
  op->record.reserve(bytes);
  write_record(*program, c, crossing == nullptr ? 0 : layout::kNamesCrossing | matrices, op->record);
  op->record.resize(bytes);  // behind it the member's counters (Slot::open)
  std::lock_guard lock(session.mutex);
  return session.post(std::move(op), out);
}
