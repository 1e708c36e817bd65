// SPDX-License-Identifier: BSD-3-Clause
// Vector programs and the memory they work on.
#include "job.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace offpath::testing {
namespace {

constexpr uint32_t kVectors = 4, kScalars = 8;

// A member's shared arrays, with values that depend on the rank.
struct Arrays {
  Arrays(offpath_session_t* s, uint32_t rank, uint64_t count) : session(s), rows(count) {
    void* memory = nullptr;
    REQUIRE_STATUS(offpath_memory_allocate(s, kScalars * sizeof(double), &memory), OFFPATH_OK);
    scalars = static_cast<double*>(memory);
    for (uint32_t v = 0; v < kVectors; ++v) {
      REQUIRE_STATUS(offpath_memory_allocate(s, std::max<uint64_t>(1, rows) * sizeof(double), &memory), OFFPATH_OK);
      vectors.push_back(static_cast<double*>(memory));
      for (uint64_t i = 0; i < rows; ++i) vectors[v][i] = static_cast<double>((i + 3 * v + rank) % 7) - 3;
    }
  }
  offpath_program_t program() const {
    offpath_program_t out{};
    out.struct_bytes = sizeof(out);
    out.scalars = scalars;
    out.scalars_count = kScalars;
    out.vectors = vectors.data();
    out.vectors_count = kVectors;
    out.rows = rows;
    return out;
  }
  offpath_session_t* session;
  uint64_t rows;
  double* scalars;
  std::vector<double*> vectors;
};

offpath_status_t run(const Process& p, offpath_team_t* team, const offpath_program_t& program,
                     const offpath_crossing_t* crossing = nullptr) {
  offpath_op_t* op = nullptr;
  REQUIRE_STATUS(offpath_program_crossing(team, &program, crossing, &op), OFFPATH_OK);
  const offpath_status_t status = offpath_op_wait(op, kLongNs);
  REQUIRE(status != OFFPATH_IN_PROGRESS);
  offpath_op_free(op);
  (void)p;
  return status;
}

// v0 = s0 v0 + v1, s2 = v0.v1 over the team, s3 = sqrt(s2 * s2); small integers, so sums are exact.
void check_program(Process& p, uint64_t rows_of_rank) {
  offpath_session_t* session = nullptr;
  offpath_team_t* team = p.join(session);
  Arrays arrays(session, p.rank, rows_of_rank);
  double expected = 0;
  std::vector<double> updated(arrays.rows);
  for (uint32_t rank = 0; rank < p.size; ++rank) {
    const uint64_t rows = p.rank == rank ? rows_of_rank : static_cast<uint64_t>(p.shared.value[rank].load());
    for (uint64_t i = 0; i < rows; ++i) {
      const double v0 = static_cast<double>((i + rank) % 7) - 3, v1 = static_cast<double>((i + 3 + rank) % 7) - 3;
      expected += (2 * v0 + v1) * v1;
      if (rank == p.rank) updated[i] = 2 * v0 + v1;
    }
  }
  arrays.scalars[0] = 2;
  arrays.scalars[1] = 1;
  const offpath_term_t update[] = {{0, 0}, {1, 1}}, dot[] = {{0, 0}, {0, 1}};
  const offpath_statement_t statements[] = {{OFFPATH_UPDATE, 0, 2, update}, {OFFPATH_DOT, 2, 2, dot}};
  const offpath_scalar_step_t after[] = {{OFFPATH_SCALAR_MULTIPLY, 3, 2, 2}, {OFFPATH_SCALAR_SQRT, 3, 3, 3}};
  offpath_program_t program = arrays.program();
  program.statements = statements;
  program.statements_count = 2;
  program.after = after;
  program.after_count = 2;
  program.reduce_first = 2;
  program.reduce_count = 1;
  const bool far = getenv("OFFPATH_TEST_DPU") != nullptr;  // nothing is shared with a service on another machine
  REQUIRE(offpath_session_shares_memory(session) == (far ? 0 : 1));
  REQUIRE_STATUS(run(p, team, program), OFFPATH_OK);
  REQUIRE(arrays.scalars[2] == expected);
  REQUIRE(arrays.scalars[3] == std::fabs(expected));
  REQUIRE(arrays.rows == 0 || memcmp(arrays.vectors[0], updated.data(), arrays.rows * sizeof(double)) == 0);
  p.barrier();
  offpath_session_detach(session);
}

void check_job(uint32_t processes, uint32_t nodes, uint64_t rows) {
  Job job(processes, nodes);
  for (uint32_t rank = 0; rank < processes; ++rank) job.shared().value[rank] = static_cast<int64_t>(rows + rank * 5);
  job.run([&](Process& p) { check_program(p, rows + p.rank * 5); });
}

TEST(Program, AloneAndInTeams) {
  for (const uint64_t rows : {0U, 1U, 9U, 2048U, 10001U}) {
    check_job(1, 1, rows);
    check_job(3, 1, rows);
  }
  check_job(4, 2, 5000);
  check_job(3, 3, 77);
}

TEST(Program, OneSeesTheOnesBefore) {
  Job(3, 2).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    Arrays arrays(session, p.rank, 5000);
    arrays.scalars[0] = 1;
    const double size = p.size;
    // s1 = sum over the team of s0, s0 = s1 / 1: multiplied by the team's size each time.
    const offpath_scalar_step_t before[] = {{OFFPATH_SCALAR_COPY, 1, 0, 0}};
    const offpath_scalar_step_t after[] = {{OFFPATH_SCALAR_COPY, 0, 1, 0}};
    offpath_program_t program = arrays.program();
    program.before = before;
    program.before_count = 1;
    program.after = after;
    program.after_count = 1;
    program.reduce_first = 1;
    program.reduce_count = 1;
    std::vector<offpath_op_t*> ops(20);
    for (offpath_op_t*& op : ops) REQUIRE_STATUS(offpath_program(team, &program, &op), OFFPATH_OK);
    for (offpath_op_t* op : ops) p.wait_ok(op), offpath_op_free(op);
    REQUIRE(arrays.scalars[0] == std::pow(size, 20));
  });
}

TEST(Program, MultipliesRowsOfAMatrix) {
  Job(1).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    Arrays arrays(session, 0, 30000);
    void* memory = nullptr;
    const uint64_t rows = 20000, first = 10000;
    REQUIRE_STATUS(offpath_memory_allocate(session, rows * 3 * 12 + (rows + 1) * 4, &memory), OFFPATH_OK);
    auto* values = static_cast<double*>(memory);
    auto* columns = reinterpret_cast<int32_t*>(values + 3 * rows);
    int32_t* offsets = columns + 3 * rows;
    std::vector<double> expected(rows);
    for (uint64_t i = 0; i < rows; ++i) {
      offsets[i] = static_cast<int32_t>(3 * i) + 100;
      for (uint64_t k = 0; k < 3; ++k) {
        columns[3 * i + k] = static_cast<int32_t>((i * 7 + k * 1000) % 30000);
        values[3 * i + k] = static_cast<double>(i % 5 + k);
        expected[i] += values[3 * i + k] * arrays.vectors[0][columns[3 * i + k]];
      }
    }
    offsets[rows] = static_cast<int32_t>(3 * rows) + 100;
    const offpath_matrix_rows_t matrix = {first, rows, offsets, columns, values, 3 * rows, 30000, 0, 1};
    const offpath_term_t both[] = {{0, 1}, {0, 2}};
    const offpath_statement_t dot = {OFFPATH_DOT, 5, 2, both};
    offpath_program_t program = arrays.program();
    program.matrices = &matrix;
    program.matrices_count = 1;
    program.statements = &dot;
    program.statements_count = 1;
    const double untouched = arrays.vectors[1][first - 1];
    REQUIRE_STATUS(run(p, team, program), OFFPATH_OK);
    REQUIRE(memcmp(arrays.vectors[1] + first, expected.data(), rows * sizeof(double)) == 0);
    REQUIRE(arrays.vectors[1][first - 1] == untouched);
    double product = 0;
    for (uint64_t i = 0; i < 30000; ++i) product += arrays.vectors[1][i] * arrays.vectors[2][i];
    REQUIRE(arrays.scalars[5] == product);
  });
}

// v0 = v0 + v1, s1 = v0.v0 over the team; what crosses is named. On another machine what is not named stays as it was.
TEST(Program, VectorsStayWithTheServiceFromOneProgramToTheNext) {
  const bool far = getenv("OFFPATH_TEST_DPU") != nullptr;
  Job(3, 2).run_in_team([&](Process& p, offpath_session_t* session, offpath_team_t* team) {
    Arrays arrays(session, p.rank, 40000);
    arrays.scalars[0] = 1;
    std::vector<double> v0(arrays.vectors[0], arrays.vectors[0] + arrays.rows), v1 = v0;
    std::copy_n(arrays.vectors[1], arrays.rows, v1.begin());
    const offpath_term_t update[] = {{0, 0}, {0, 1}}, dot[] = {{0, 0}, {0, 0}};
    const offpath_statement_t statements[] = {{OFFPATH_UPDATE, 0, 2, update}, {OFFPATH_DOT, 1, 2, dot}};
    offpath_program_t program = arrays.program();
    program.statements = statements;
    program.statements_count = 2;
    program.reduce_first = 1;
    program.reduce_count = 1;
    const uint32_t both[] = {0, 1};
    const offpath_crossing_t first = {sizeof(first), 0, both, nullptr, 2, 0},
                             later = {sizeof(later), 0, nullptr, nullptr, 0, 0};
    for (int round = 0; round < 5; ++round) {
      REQUIRE_STATUS(run(p, team, program, round == 0 ? &first : &later), OFFPATH_OK);
      for (uint64_t i = 0; i < arrays.rows; ++i) v0[i] += v1[i];
      REQUIRE((memcmp(arrays.vectors[0], v0.data(), arrays.rows * sizeof(double)) != 0) == far);
    }
    double own = 0;
    for (const double value : v0) own += value * value;  // integers
    p.shared.value[p.rank] = static_cast<int64_t>(own);
    p.barrier();
    REQUIRE(arrays.scalars[1] == static_cast<double>(p.shared.value[0] + p.shared.value[1] + p.shared.value[2]));
    program.statements_count = 0;
    program.reduce_count = 0;
    const offpath_crossing_t back = {sizeof(back), 0, nullptr, both, 0, 1};
    REQUIRE_STATUS(run(p, team, program, &back), OFFPATH_OK);
    REQUIRE(memcmp(arrays.vectors[0], v0.data(), arrays.rows * sizeof(double)) == 0);
  });
}

// The matrix is there after the first time; here it is spoilt then.
TEST(Program, MatricesStayWithTheServiceToo) {
  const bool far = getenv("OFFPATH_TEST_DPU") != nullptr;
  Job(1).run_in_team([&](Process& p, offpath_session_t* session, offpath_team_t* team) {
    Arrays arrays(session, 0, 10);
    void* memory = nullptr;
    REQUIRE_STATUS(offpath_memory_allocate(session, 4096, &memory), OFFPATH_OK);
    auto* values = static_cast<double*>(memory);
    auto* columns = reinterpret_cast<int32_t*>(values + 8);
    int32_t* offsets = columns + 8;
    for (int32_t i = 0; i < 4; ++i) offsets[i] = i, columns[i] = 9 - i, values[i] = i + 1;
    offsets[4] = 4;
    const offpath_matrix_rows_t matrix = {3, 4, offsets, columns, values, 4, 10, 0, 1};
    offpath_program_t program = arrays.program();
    program.matrices = &matrix;
    program.matrices_count = 1;
    const uint32_t in = 0, out = 1;
    offpath_crossing_t crossing = {sizeof(crossing), OFFPATH_CROSSING_MATRICES, &in, &out, 1, 1};
    for (int round = 0; round < 2; ++round) {
      for (uint64_t i = 0; i < 10; ++i) arrays.vectors[0][i] = static_cast<double>(i) + round;
      std::fill_n(arrays.vectors[1], 10, -1);
      REQUIRE_STATUS(run(p, team, program, &crossing), OFFPATH_OK);
      for (int i = 0; i < 10; ++i) {
        const double product = (i - 2) * (9.0 - (i - 3) + round);
        REQUIRE(arrays.vectors[1][i] == (i >= 3 && i < 7 ? product : -1));
      }
      crossing.flags = 0;
      if (far) std::fill_n(values, 4, 0);
    }
  });
}

TEST(SharedMemory, IsAFileThatOthersMayMap) {
  Job(1).run([](Process& p) {
    offpath_session_t* session = nullptr;
    p.join(session);
    void *first = nullptr, *memory = nullptr;
    REQUIRE_STATUS(offpath_memory_allocate(session, 5000, &first), OFFPATH_OK);
    REQUIRE_STATUS(offpath_memory_allocate(session, 9000, &memory), OFFPATH_OK);
    int file = -1;
    uint64_t offset = 0;
    REQUIRE_STATUS(offpath_memory_file(session, memory, &file, &offset), OFFPATH_OK);
    void* again = mmap(nullptr, 9000, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
    REQUIRE(again != MAP_FAILED && again != memory);
    static_cast<char*>(memory)[8999] = 'a';
    REQUIRE(static_cast<char*>(again)[8999] == 'a');
    munmap(again, 9000);
    int own = 0;
    REQUIRE_STATUS(offpath_memory_file(session, &own, &file, &offset), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_memory_file(session, static_cast<char*>(memory) + 1, &file, &offset), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_memory_file(session, nullptr, &file, &offset), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_memory_file(session, memory, nullptr, &offset), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_memory_file(nullptr, memory, &file, &offset), OFFPATH_ERR_ARGUMENT);
    offpath_memory_free(session, memory);
    REQUIRE_STATUS(offpath_memory_file(session, memory, &file, &offset), OFFPATH_ERR_ARGUMENT);
    offpath_session_detach(session);
  });
}

TEST(Program, MistakesAreRefused) {
  Job(1).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    Arrays arrays(session, 0, 100);
    offpath_op_t* op = nullptr;
    offpath_program_t program = arrays.program();
    program.struct_bytes = 8;
    REQUIRE_STATUS(offpath_program(team, &program, &op), OFFPATH_ERR_ARGUMENT);
    program = arrays.program();
    program.scalars = nullptr;
    REQUIRE_STATUS(offpath_program(team, &program, &op), OFFPATH_ERR_ARGUMENT);
    program = arrays.program();
    program.statements_count = 1;
    REQUIRE_STATUS(offpath_program(team, &program, &op), OFFPATH_ERR_ARGUMENT);
    const offpath_term_t terms[] = {{0, 0}, {0, kVectors}, {kScalars, 0}, {0, 1}, {0, 2}};
    for (const offpath_statement_t& wrong : {offpath_statement_t{OFFPATH_UPDATE, kVectors, 1, terms},
                                             {OFFPATH_UPDATE, 0, 2, terms},
                                             {OFFPATH_UPDATE, 0, 1, terms + 2},
                                             {OFFPATH_UPDATE, 0, 5, terms},
                                             {OFFPATH_DOT, kScalars, 2, terms + 3},
                                             {OFFPATH_DOT, 0, 1, terms},
                                             {static_cast<offpath_statement_kind_t>(9), 0, 1, terms}}) {
      program = arrays.program();
      program.statements = &wrong;
      program.statements_count = 1;
      REQUIRE_STATUS(run(p, team, program), OFFPATH_ERR_ARGUMENT);
    }
    program = arrays.program();
    const uint32_t wrong_vector = kVectors;
    offpath_crossing_t crossing = {sizeof(crossing), 0, &wrong_vector, nullptr, 1, 0};
    REQUIRE_STATUS(run(p, team, program, &crossing), OFFPATH_ERR_ARGUMENT);
    crossing = {sizeof(crossing), 0, nullptr, nullptr, 1, 0};
    REQUIRE_STATUS(offpath_program_crossing(team, &program, &crossing, &op), OFFPATH_ERR_ARGUMENT);
    crossing = {sizeof(crossing), 2, nullptr, nullptr, 0, 0};
    REQUIRE_STATUS(offpath_program_crossing(team, &program, &crossing, &op), OFFPATH_ERR_ARGUMENT);
    crossing = {8, 0, nullptr, nullptr, 0, 0};
    REQUIRE_STATUS(offpath_program_crossing(team, &program, &crossing, &op), OFFPATH_ERR_ARGUMENT);
    const offpath_scalar_step_t step = {OFFPATH_SCALAR_ADD, 0, 0, kScalars};
    program = arrays.program();
    program.before = &step;
    program.before_count = 1;
    REQUIRE_STATUS(run(p, team, program), OFFPATH_ERR_ARGUMENT);
    program = arrays.program();
    program.reduce_first = kScalars - 1;
    program.reduce_count = 2;
    REQUIRE_STATUS(run(p, team, program), OFFPATH_ERR_ARGUMENT);
    // Beyond the shared memory, and memory that is not shared.
    program = arrays.program();
    program.rows = uint64_t{1} << 41;
    REQUIRE_STATUS(run(p, team, program), OFFPATH_ERR_MEMORY_FAULT);
    std::vector<double> own(100);
    arrays.vectors[3] = own.data();
    program = arrays.program();
    REQUIRE_STATUS(run(p, team, program), OFFPATH_ERR_MEMORY_FAULT);
  });
}

TEST(Program, AFailureFailsThoseBehindItAndThePeers) {
  Job(2, 2).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    Arrays arrays(session, p.rank, 100);
    std::vector<double> own(100);
    offpath_program_t program = arrays.program();
    program.reduce_count = 1;
    if (p.rank == 0) arrays.vectors[0] = own.data();
    REQUIRE_STATUS(run(p, team, program), OFFPATH_ERR_MEMORY_FAULT);
    arrays.vectors[0] = arrays.vectors[1];
    REQUIRE_STATUS(run(p, team, program), OFFPATH_OK);
  });
}

// Dots of rounding values, over and over; then leaves in the middle of some more.
void check_helpers(Process& p, uint32_t helpers) {
  offpath_session_t* session = nullptr;
  offpath_team_t* team = p.join(session);
  const offpath_session_counters_t counters = counters_of(session);
  REQUIRE(counters.service_helpers_count == helpers);
  Arrays arrays(session, p.rank, 200000);
  for (uint64_t i = 0; i < arrays.rows; ++i) arrays.vectors[1][i] = 1.0 / static_cast<double>(i + 1);
  arrays.scalars[0] = 0.3;
  arrays.scalars[1] = 0.7;
  const offpath_term_t update[] = {{0, 0}, {1, 1}}, dot[] = {{0, 0}, {0, 0}};
  const offpath_statement_t statements[] = {{OFFPATH_UPDATE, 0, 2, update}, {OFFPATH_DOT, 2, 2, dot}};
  offpath_program_t program = arrays.program();
  program.statements = statements;
  program.statements_count = 2;
  for (int round = 0; round < 50; ++round) REQUIRE_STATUS(run(p, team, program), OFFPATH_OK);
  int64_t bits = 0;
  memcpy(&bits, &arrays.scalars[2], sizeof(bits));
  p.shared.value[p.rank] = bits;
  std::vector<offpath_op_t*> ops(8);
  for (offpath_op_t*& op : ops) REQUIRE_STATUS(offpath_program(team, &program, &op), OFFPATH_OK);
  p.barrier();
  offpath_session_detach(session);
}

TEST(Program, CoresBeyondTheWorkersHelp) {
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "needs two cores";
  int64_t alone = 0;
  for (const uint32_t helpers : {0U, 1U}) {
    Job job(2);
    job.run([&](Process& p) {
      setenv("OFFPATH_SERVICE_SHARE", helpers == 0 ? "1" : "0", 1);
      setenv("OFFPATH_SERVICE_CORES", "0,1", 1);
      check_helpers(p, helpers);
    });
    if (helpers == 0) alone = job.shared().value[0];
    EXPECT_EQ(job.shared().value[0], alone);
  }
}

TEST(Program, ALostServiceEndsIt) {
  Job(1).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
    Arrays arrays(session, 0, 1000);
    const offpath_program_t program = arrays.program();
    REQUIRE_STATUS(run(p, team, program), OFFPATH_OK);
    REQUIRE(kill(service_of(session), SIGKILL) == 0);
    REQUIRE(eventually([&] { return offpath_session_alive(session) == 0; }));
    offpath_op_t* op = nullptr;
    REQUIRE_STATUS(offpath_program(team, &program, &op), OFFPATH_ERR_NOT_STARTED);
    arrays.vectors[0][999] = 4;  // the memory is the client's
    REQUIRE(arrays.vectors[0][999] == 4);
  });
}

// Buffers of other operations may lie there too; one side or both.
TEST(Memory, CollectivesWorkOnIt) {
  for (const uint32_t nodes : {1U, 2U}) {
    Job(4, nodes).run_in_team([](Process& p, offpath_session_t* session, offpath_team_t* team) {
      constexpr uint64_t kBytes = 100000;
      void* shared = nullptr;
      REQUIRE_STATUS(offpath_memory_allocate(session, p.size * kBytes, &shared), OFFPATH_OK);
      std::vector<uint8_t> own(p.size * kBytes);
      for (const bool send_shared : {false, true}) {
        auto* send = send_shared ? static_cast<uint8_t*>(shared) : own.data();
        auto* recv = send_shared ? own.data() : static_cast<uint8_t*>(shared);
        for (uint64_t i = 0; i < p.size * kBytes; ++i) send[i] = static_cast<uint8_t>(i / kBytes * 16 + p.rank + i % 7);
        p.complete([&](auto op) { return offpath_alltoall(team, send, recv, kBytes, op); });
        for (uint64_t i = 0; i < p.size * kBytes; ++i) {
          const uint64_t at = p.rank * kBytes + i % kBytes;
          REQUIRE(recv[i] == static_cast<uint8_t>(p.rank * 16 + i / kBytes + at % 7));
        }
      }
    });
  }
}

TEST(Memory, IsZeroedAndCanBeHadAgain) {
  setenv("OFFPATH_SHARED_MEMORY_BYTES", "1048576", 1);
  Job(1).run_attached([](Process&, offpath_session_t* session) {
    void* memory = nullptr;
    REQUIRE_STATUS(offpath_memory_allocate(session, 0, &memory), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_memory_allocate(session, 1048577, &memory), OFFPATH_ERR_NO_MEMORY);
    REQUIRE_STATUS(offpath_memory_allocate(session, UINT64_MAX, &memory), OFFPATH_ERR_NO_MEMORY);
    for (int round = 0; round < 3; ++round) {
      std::vector<void*> pieces(256);
      for (void*& piece : pieces) {
        REQUIRE_STATUS(offpath_memory_allocate(session, 4000, &piece), OFFPATH_OK);
        const auto* bytes = static_cast<const uint8_t*>(piece);
        REQUIRE(bytes[0] == 0 && bytes[3999] == 0);
        memset(piece, 7, 4000);
      }
      REQUIRE_STATUS(offpath_memory_allocate(session, 1, &memory), OFFPATH_ERR_NO_MEMORY);
      for (int i = 0; i < 256; i += 2) offpath_memory_free(session, pieces[i]);
      for (int i = 1; i < 256; i += 2) offpath_memory_free(session, pieces[i]);
      offpath_memory_free(session, pieces[0]);  // twice: nothing happens
      REQUIRE_STATUS(offpath_memory_allocate(session, 1048576, &memory), OFFPATH_OK);
      offpath_memory_free(session, memory);
    }
  });
  unsetenv("OFFPATH_SHARED_MEMORY_BYTES");
}

}  // namespace
}  // namespace offpath::testing
