"""Programs that only use names of PyTorch's show there what they show here."""

from __future__ import annotations

import functools

import pytest

import tracejit as tj
from tests.capture.program_table import ROWS
from tests.capture.shown import assert_same, plain, seen

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

NOT_IN_TORCH: dict[str, str] = {}


def there(row):
    from tests.capture.torch_programs import over_torch

    torch.manual_seed(0)
    return seen(row.run(plain, over_torch(row.module)), strides=False, messages=False)


def here(row):
    tj.manual_seed(0)
    return seen(row.run(plain), strides=False, messages=False)


@pytest.mark.parametrize("row", [r for r in ROWS if r.name not in NOT_IN_TORCH], ids=lambda r: r.name)
def test_program_shows_what_it_shows_in_torch(row):
    assert_same(here(row), there(row))
