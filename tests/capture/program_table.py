"""The table of programs that must show the same plainly and captured: subjects, runs, the page.

In: the `programs_*.py` beside this file. Out: `ROWS`, one `Row` for each program, and the text of
docs/programs.md, which `python -m tests.capture.program_table` writes. Called by
`test_programs.py` and `test_programs_oracle.py`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import tracejit as tj
from tests.capture import (
    programs_absent_gradients,
    programs_absent_names,
    programs_aliasing,
    programs_appended,
    programs_arrays,
    programs_asked_names,
    programs_attributes,
    programs_autograd,
    programs_branches,
    programs_calls,
    programs_carried,
    programs_choices,
    programs_classes,
    programs_complex,
    programs_containers,
    programs_decorated_methods,
    programs_distinct,
    programs_done_once,
    programs_dynamic,
    programs_effects,
    programs_found,
    programs_found_in_blocks,
    programs_found_in_flow,
    programs_found_of_numbers,
    programs_found_of_objects,
    programs_found_of_tensors,
    programs_freed_by_regions,
    programs_functional,
    programs_functions,
    programs_gradients_arriving,
    programs_gradients_kept,
    programs_idioms,
    programs_items,
    programs_jumps,
    programs_kept_by_regions,
    programs_kept_calls,
    programs_kept_numbers,
    programs_known_contents,
    programs_leaves_made,
    programs_left_alone,
    programs_library_objects,
    programs_local_functions,
    programs_loops,
    programs_made_objects,
    programs_methods,
    programs_metrics,
    programs_missing_attributes,
    programs_mixtures,
    programs_modules,
    programs_mutation,
    programs_names,
    programs_of_constants,
    programs_of_data,
    programs_one_of_two,
    programs_pending_values,
    programs_pickles,
    programs_positions,
    programs_random,
    programs_region_layouts,
    programs_region_numbers,
    programs_region_results,
    programs_region_sharing,
    programs_result_gradients,
    programs_result_views,
    programs_returned_objects,
    programs_returns,
    programs_seams,
    programs_second_derivatives,
    programs_shapes,
    programs_sides,
    programs_sizes_and_constants,
    programs_staleness,
    programs_texts,
    programs_thread_locals,
    programs_training,
    programs_trials,
    programs_windows,
)
from tracejit import config

PAGE = Path(__file__).resolve().parents[2] / "docs" / "programs.md"
SUBJECTS: dict[str, tuple[ModuleType, ...]] = {
    "mutation": (programs_mutation,),
    "aliasing": (programs_aliasing, programs_positions, programs_result_views),
    "staleness": (
        programs_staleness,
        programs_modules,
        programs_classes,
        programs_methods,
        programs_decorated_methods,
        programs_functions,
        programs_calls,
        programs_containers,
        programs_distinct,
        programs_done_once,
        programs_kept_calls,
        programs_kept_numbers,
        programs_known_contents,
        programs_attributes,
        programs_arrays,
        programs_asked_names,
        programs_absent_names,
        programs_left_alone,
        programs_library_objects,
        programs_missing_attributes,
        programs_pickles,
        programs_thread_locals,
        programs_windows,
    ),
    "control flow": (programs_branches, programs_sides, programs_loops, programs_jumps,
                     programs_carried, programs_appended, programs_items,
                     programs_local_functions,
                     programs_returned_objects, programs_returns, programs_choices, programs_names),
    "shapes": (programs_shapes, programs_dynamic, programs_sizes_and_constants,
               programs_of_constants),
    "RNG": (programs_random,),
    "autograd": (programs_autograd, programs_absent_gradients, programs_second_derivatives,
                 programs_training, programs_functional, programs_result_gradients,
                 programs_gradients_arriving, programs_gradients_kept,
                 programs_freed_by_regions, programs_kept_by_regions, programs_of_data,
                 programs_one_of_two, programs_leaves_made),
    "effects": (programs_effects, programs_metrics, programs_texts, programs_pending_values),
    "mixtures": (programs_mixtures, programs_seams, programs_complex),
    "regions": (programs_trials, programs_region_results, programs_region_numbers,
                programs_region_sharing, programs_region_layouts),
    "found": (programs_found, programs_found_in_flow, programs_found_in_blocks,
              programs_found_of_tensors, programs_found_of_objects, programs_found_of_numbers,
              programs_idioms, programs_made_objects),
}
HEAD = """# Programs that show the same plainly and captured

Each makes several calls with changed state. What it returns, and whatever else its caller can look
at, must be what plain execution gives, under `@script` in every mode and under `@trace`
(`tests/capture/test_programs.py`), and what PyTorch gives where it has the same names
(`tests/capture/test_programs_oracle.py`). Compiles and breaks are those of all functions that a
program captures, under `@script`. Written by `python -m tests.capture.program_table`, checked by
the tests.
"""
LINE = re.compile(r"^\| `(\w+)` \| ([\w ]+) \| (\d+) \| (\d+) \|$")


@dataclass(frozen=True)
class Row:
    """A program: its name, its subject, the module it is in."""

    name: str
    subject: str
    module: ModuleType

    def run(self, jit: Callable, names: Any = None) -> Any:
        """What the program shows; `names`: the module to take it from, when not its own."""
        result = getattr(names or self.module, self.name)(jit)
        return result[1:] if self.module is programs_metrics else result  # the function comes first


ROWS = [
    Row(program.__name__, subject, module)
    for subject, modules in SUBJECTS.items()
    for module in modules
    for program in module.PROGRAMS
]


class Counting:
    """A decorator that captures, and counts what that took."""

    def __init__(self, jit: Callable):
        self.jit, self.made = jit, []  # type: ignore[var-annotated]

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.made.append(self.jit(*args, **options))
        return self.made[-1]

    def figures(self) -> tuple[int, int]:
        """Compiles, and breaks recorded, of every function that was captured."""
        reports = [function.report() for function in self.made if hasattr(function, "report")]
        return sum(r.compiles for r in reports), sum(len(r.breaks) for r in reports)


def figures(row: Row) -> tuple[int, int]:
    """Compiles and breaks of a program under `script`."""
    counting = Counting(tj.script)
    tj.manual_seed(0)
    # Whether it fails is what the tests look at; the page tells what was compiled until then.
    with config.override(mode="graph"), contextlib.suppress(Exception):
        row.run(counting)
    return counting.figures()


def page() -> str:
    """The text of docs/programs.md."""
    counts = (f"{sum(r.subject == s for r in ROWS)} {s}" for s in SUBJECTS)
    lines = [HEAD, f"{len(ROWS)} programs: {', '.join(counts)}.", ""]
    lines += ["| program | subject | compiles | breaks |", "| --- | --- | --- | --- |"]
    lines += ["| `{}` | {} | {} | {} |".format(r.name, r.subject, *figures(r)) for r in ROWS]
    return "\n".join(lines) + "\n"


def documented() -> Iterator[tuple[str, str, int, int]]:
    """The rows of docs/programs.md."""
    for line in PAGE.read_text().splitlines():
        if match := LINE.match(line):
            yield match[1], match[2], int(match[3]), int(match[4])


if __name__ == "__main__":
    PAGE.write_text(page())
