"""Programs that only use names of PyTorch's show there what they show here."""

from __future__ import annotations

import pytest

import tracejit as tj
from tests.capture.program_table import ROWS
from tests.capture.shown import assert_same, plain, seen
from tests.capture.torch_programs import over_torch

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore:Use of .* on expanded tensors:UserWarning"),
]

RANDOM = "PyTorch draws other numbers"
FIXED = "PyTorch's objects of this class take no attributes, or none in place of methods"
ORDER = "what is computed from transposed tensors is transposed in PyTorch, and in order here"
NOT_IN_TORCH = {
    **{row.name: RANDOM for row in ROWS if row.subject == "RNG"},
    "random_draws": RANDOM,
    "random_numbers_are_no_constants": RANDOM,
    "random_numbers_of_samples": RANDOM,
    "seeded_inside_each_call": RANDOM,
    "explicit_generator": RANDOM,
    "training_flag": RANDOM,
    "random_numbers_in_a_side": RANDOM,
    "dropout_in_a_loop": RANDOM,
    "inner_loop_alone_draws": RANDOM,
    "loop_in_a_branch_draws": RANDOM,
    "loop_in_a_while_draws": RANDOM,
    "dropout_step": RANDOM,
    "a_generator_that_is_the_default_one": RANDOM,
    "higher_gradient_through_dropout": RANDOM,
    "methods_of_a_module_that_counts": FIXED,
    "attributes_of_generators": FIXED,
    "attributes_of_float_infos": FIXED,
    "attributes_that_generators_may_lack": FIXED,
    "attributes_stored_in_generators": FIXED,
    "attributes_of_generators_whose_lack_is_handled": FIXED,
    "number_of_attributes_of_a_generator": FIXED,
    "overlapping_arguments": "PyTorch refuses to write memory that partly overlaps what is read",
    "memory_that_overlaps_itself_is_written": "PyTorch writes such memory in an order of its own",
    "layouts_asked_for_in_regions": ORDER,
    "layouts_of_what_may_be_an_argument": ORDER,
    "functions_that_cannot_be_differentiated_twice": "PyTorch asks first what was used: both raise",
    "more_dimensions_than_there_can_be": "PyTorch has more dimensions than NumPy's 64",
    "one_of_two_resized": "PyTorch resizes a tensor that has views",
    "contiguous_of_transposed_of_sizes_1": "strides where there is one element or none differ",
}


def same(row):
    """Fails where the program shows something else over PyTorch."""
    torch.manual_seed(0)
    expected = seen(row.run(plain, over_torch(row.module)), strides=False, messages=False)
    tj.manual_seed(0)
    assert_same(seen(row.run(plain), strides=False, messages=False), expected)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.name not in NOT_IN_TORCH], ids=lambda row: row.name
)
def test_program_shows_what_it_shows_in_torch(row):
    same(row)


@pytest.mark.parametrize("name", NOT_IN_TORCH)
def test_a_program_that_is_left_out_would_fail(name):
    (row,) = [row for row in ROWS if row.name == name]
    with pytest.raises((AssertionError, RuntimeError, AttributeError, TypeError, ValueError)):
        same(row)
