# SPDX-License-Identifier: BSD-3-Clause
"""Files whose tests may run beside others. Others run MPI programs, labs or services: four at a time."""

# They start nothing but the command line, except for tests that are marked machine or requires_root.
SIDE_BY_SIDE = {
    "test_api_buffers", "test_api_header", "test_api_rendezvous", "test_bench_adapt", "test_bench_alltoall",
    "test_bench_collectives", "test_bench_faults", "test_bench_guest", "test_bench_kit", "test_bench_krylov",
    "test_bench_onesided", "test_bench_pt2pt", "test_bench_training", "test_bench_trust", "test_build",
    "test_call_sites", "test_charts", "test_cli_errors", "test_clusters", "test_command_line",
    "test_config", "test_dashboard", "test_demo_result", "test_docs", "test_docs_site", "test_dpus",
    "test_frames", "test_goals", "test_imports", "test_include_check", "test_measure_programs",
    "test_measured", "test_memory", "test_network_words", "test_mpi_functions", "test_nightly", "test_oldest",
    "test_otf2", "test_packaging", "test_papers", "test_plan", "test_plan_balance", "test_plan_dealing",
    "test_plan_messages", "test_plan_minimd", "test_plan_training",
    "test_plan_validation", "test_policy_table", "test_run", "test_run_guest", "test_runtime_folder", "test_selftest",
    "test_split", "test_split_command", "test_split_reader", "test_split_schedule", "test_stability", "test_telemetry",
    "test_tune", "test_words",
}  # fmt: skip

# They look at all shared memory or control groups of the machine, or change them: nothing runs beside them. So do tests
# that are marked alone.
ALONE = {"test_slurm", "test_slurm_dpus", "test_slurm_killed"}

# Files whose tests on a machine take long: of them a third is drawn for each change, and all run in make nightly.
LONG = {
    "test_api_ranks", "test_bench_balance", "test_bench_compression", "test_bench_guest", "test_bench_krylov",
    "test_bench_multicast", "test_bench_onesided", "test_bench_worker", "test_conformance", "test_conformance_rma",
    "test_devices", "test_first_commands", "test_lab", "test_lab_dpus", "test_lab_machines", "test_lab_multicast",
    "test_lab_offload", "test_lab_rdma", "test_lab_run", "test_lab_tasks", "test_lab_trace", "test_middle",
    "test_minimd", "test_petsc", "test_plan", "test_real_programs", "test_slurm", "test_slurm_dpus",
    "test_slurm_killed", "test_telemetry", "test_top", "test_torch", "test_trace_kept",
}  # fmt: skip
