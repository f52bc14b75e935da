"""What `make test` and its kind take a sample of: one in so many, always the same ones.

In: the name of a case, and one of how many runs. Out: its marks. `make test-full` runs all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from zlib import crc32

import pytest


def share(name: str, one_in: int) -> list[Any]:
    """Return the marks of a case of which one in so many is for every run."""
    return [pytest.mark.full] if crc32(name.encode()) % one_in else []


# Files of many cases that take minutes: of each, one case in so many is for every run.
SAMPLED = {
    "tests/amp/test_autocast_oracle.py": 2,
    "tests/amp/test_captured.py": 4,
    "tests/capture/test_collector.py": 2,
    "tests/capture/test_control_flow_figures.py": 6,
    "tests/capture/test_effects_in_sides.py": 12,
    "tests/capture/test_errors_of_kept.py": 4,
    "tests/capture/test_failures.py": 20,
    "tests/capture/test_host_reads.py": 12,
    "tests/capture/test_interrupts.py": 10,
    "tests/capture/test_lifetime.py": 8,
    "tests/capture/test_logging_of_the_users.py": 8,
    "tests/capture/test_number_arguments.py": 20,
    "tests/capture/test_number_sizes.py": 24,
    "tests/capture/test_programs.py": 16,
    "tests/capture/test_programs_oracle.py": 6,
    "tests/capture/test_rewrite.py": 8,
    "tests/capture/test_scripted_modules.py": 2,
    "tests/capture/test_snapshots.py": 6,
    "tests/capture/test_survivors_reads.py": 3,
    "tests/capture/test_threads.py": 3,
    "tests/cuda/test_ptx.py": 3,
    "tests/distributed/test_captured.py": 2,
    "tests/distributed/test_sharded_gradients.py": 2,
    "tests/distributions/test_captured.py": 3,
    "tests/distributions/test_distributions_oracle.py": 4,
    "tests/distributions/test_transforms_oracle.py": 2,
    "tests/eager/test_origins_oracle.py": 3,
    "tests/eager/test_storages_captured.py": 3,
    "tests/errors/test_errors.py": 3,
    "tests/errors/test_hints.py": 5,
    "tests/lowering/test_guarded_memory.py": 3,
    "tests/lowering/test_philox.py": 4,
    "tests/lowering/test_vector_math.py": 10,
    "tests/nn/test_causal_hints_oracle.py": 2,
    "tests/nn/test_encoder_padding_oracle.py": 4,
    "tests/nn/test_flex_attention_oracle.py": 9,
    "tests/nn/test_interpolation_oracle.py": 3,
    "tests/nn/test_layers_oracle.py": 6,
    "tests/nn/test_module_samples_oracle.py": 6,
    "tests/nn/test_norm_layers.py": 3,
    "tests/nn/test_padding_oracle.py": 3,
    "tests/nn/test_parametrize_oracle.py": 4,
    "tests/nn/test_pooling_oracle.py": 3,
    "tests/nn/test_recurrent.py": 8,
    "tests/nn/test_recurrent_cells.py": 6,
    "tests/nn/test_switches_oracle.py": 4,
    "tests/nn/test_transformer.py": 9,
    "tests/nn/test_windows_oracle.py": 2,
    "tests/ops/test_corners_oracle.py": 3,
    "tests/ops/test_fitting_oracle.py": 20,
    "tests/ops/test_foreach_lists_oracle.py": 3,
    "tests/ops/test_long_sums.py": 3,
    "tests/ops/test_loss_arguments_oracle.py": 6,
    "tests/ops/test_masked_oracle.py": 4,
    "tests/ops/test_native_functions_oracle.py": 6,
    "tests/ops/test_numbers_that_fit_oracle.py": 4,
    "tests/ops/test_opinfo.py": 24,
    "tests/ops/test_overflow.py": 8,
    "tests/ops/test_sampling.py": 3,
    "tests/optim/test_captured_steps.py": 6,
    "tests/optim/test_optimizer_protocol_oracle.py": 2,
    "tests/optim/test_optimizers_oracle.py": 4,
    "tests/optim/test_schedule_protocol_oracle.py": 3,
    "tests/optim/test_sparse_gradients_oracle.py": 9,
    "tests/oracle/test_numpy_names_oracle.py": 2,
    "tests/oracle/test_operator_errors.py": 6,
    "tests/oracle/test_operator_samples.py": 6,
    "tests/oracle/test_operator_variants.py": 6,
    "tests/oracle/test_refusals_oracle.py": 2,
    "tests/oracle/test_shared_memory_oracle.py": 15,
    "tests/passes/test_random_graphs.py": 8,
    "tests/random_programs/test_aliases.py": 12,
    "tests/random_programs/test_flow.py": 10,
    "tests/random_programs/test_jumps.py": 8,
    "tests/random_programs/test_random_programs.py": 2,
    "tests/random_programs/test_worlds.py": 8,
    "tests/runtime/test_executable.py": 2,
    "tests/runtime/test_progress.py": 2,
    "tests/runtime/test_regions.py": 12,
    "tests/saving/test_hostile_files.py": 2,
    "tests/test_examples.py": 3,
    "tests/torch_programs/test_torch_programs.py": 6,
    "tests/types/test_editors.py": 2,
    "tests/utils/test_data_oracle.py": 2,
    "tests/utils/test_loader_workers.py": 10,
}


def mark_the_rest(items: Iterable[pytest.Item]) -> None:
    """Mark cases of the files above as `full`, but for the share that every run takes."""
    for item in items:
        name = item.nodeid.partition("::")[0]
        if "[" in item.nodeid:
            for mark in share(item.nodeid, SAMPLED.get(name, 1)):
                item.add_marker(mark)
