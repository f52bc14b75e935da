"""A program compiles to the same in each process, wherever objects lie and whenever garbage goes.

In: programs of the table, recorded in processes that differ in the seed of hashes, the collector of
garbage and the addresses of objects. Out: graphs, guards and kernels, which must be the same text.
"""

from __future__ import annotations

import gc
import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import replay_gate

# Each of these differed before: two gradients by their addresses, guards by the seed of hashes,
# what else is alive by when the collector ran.
FEW = (
    "branch_in_a_loop",
    "continue_in_a_loop",
    "getattr_of_other_names",
    "hooks_where_paths_meet",
    "large_ints_in_a_loop",
    "set_of_classes_that_the_call_fills",
)
MORE = (
    "a_mapped_function_of_the_module_s",
    "a_training_step",
    "and_or_not",
    "attributes_of_computed_names_appear_and_go",
    "attributes_of_tensors_come_and_go",
    "backwards_in_any_order",
    "beam_of_masks",
    "break_with_else",
    "captured_called_in_a_captured_loop",
    "cell_module",
    "clipped_step",
    "comprehension_over_its_own_name",
    "continue_out_of_a_statement_that_is_python",
    "dropped_name_after_a_break",
    "early_exit_of_nested_loops",
    "finally_after_a_return",
    "gradients_of_one_of_two",
    "history_overwritten_where_no_gradient_arrives",
    "history_that_is_kept_if_there_is_no_iteration",
    "identity_asked_for",
    "layouts_of_what_may_be_an_argument",
    "leaf_chosen_where_no_gradients_are_recorded",
    "leaves_reached_by_a_variable_that_was_chosen",
    "negative_places_in_a_loop",
    "numbers_of_objects",
    "positions_that_decide_a_mask",
    "power_iteration_until_it_settles",
    "product_in_a_nested_branch_kept",
    "return_before_the_weights_are_used",
    "return_inside_a_branch",
    "rows_of_what_may_be_expanded",
    "variables_that_may_be_one_after_a_loop",
    "writes_to_what_may_be_kept",
    "written_by_the_iteration_after",
)
# How a process differs from others: the seed of hashes, the collector, objects in between.
KINDS = ((0, "as it is", 0), (1, "never", 50_000), (2, "always", 0), (3, "as it is", 200_000))


def disturb(collector: str, objects: int) -> list[Any]:
    """Change when garbage goes, and where objects will lie: around those returned."""
    if collector == "never":
        gc.disable()
    elif collector == "always":
        gc.set_threshold(1)
    sizes = random.Random(objects)
    made: list[Any] = [bytearray(sizes.randrange(512)) if k % 2 else {k: k} for k in range(objects)]
    sizes.shuffle(made)
    return made[::2]


def recordings(names: tuple[str, ...], kinds: Any, folder: Path) -> list[dict[str, list[str]]]:
    """Record the programs in one process of each kind, two at a time."""
    running, found = [], []
    only = [f"program {name}" for name in names]
    for seed, collector, objects in kinds:
        path = str(folder / f"{seed}.gz")
        code = ("from tests import replay_gate, test_same_programs\n"
                f"kept = test_same_programs.disturb({collector!r}, {objects})\n"
                f"replay_gate.record({path!r}, {only!r})")
        environment = {
            **os.environ, "PYTHONHASHSEED": str(seed), "TRACEJIT_NUM_THREADS": "1",
            "TRACEJIT_CACHE_DIR": str(folder / f"cache{seed}"),
            "PYTHONPATH": str(replay_gate.ROOT)}
        running.append((path, subprocess.Popen([sys.executable, "-B", "-c", code],
                                               cwd=replay_gate.ROOT, env=environment)))
        if len(running) == 2 or len(running) + len(found) == len(kinds):
            for path, process in running:
                assert process.wait() == 0
                with gzip.open(path, "rt") as file:
                    found.append(json.load(file))
            running.clear()
    return found


def assert_same(names: tuple[str, ...], one: Any, *others: Any) -> None:
    assert len(one) == len(names) and all(one.values())
    settled = [{name: [replay_gate.settled(text) for text in found[name]] for name in one}
               for found in (one, *others)]
    differing = [name for name in one if any(x[name] != settled[0][name] for x in settled)]
    assert not differing, "compiled to something else in another process"


def test_programs_do_not_depend_on_the_process(tmp_path):
    assert_same(FEW, *recordings(FEW, KINDS[:2], tmp_path))


def test_programs_do_not_depend_on_the_cache_of_kernels(tmp_path):
    """Constants are computed during a recording: the text of their kernel is no code of the
    user's."""
    names = ("positions_that_decide_a_mask",)
    cold, warm = [recordings(names, KINDS[:1], tmp_path) for _ in range(2)]
    assert_same(names, *cold, *warm)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_more_programs_in_more_processes(tmp_path):
    assert_same(FEW + MORE, *recordings(FEW + MORE, KINDS, tmp_path))
