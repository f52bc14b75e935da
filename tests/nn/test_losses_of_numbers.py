"""Losses, pools and attention at their ends: integers, no samples, biases of one row."""

import tracejit

F = tracejit.nn.functional


def test_a_ranking_of_integers_is_floating():
    x, y = tracejit.tensor([3, 1]), tracejit.tensor([1, 2])
    assert F.margin_ranking_loss(x, y, tracejit.tensor([-1, 1])).item() == 1.5


def test_fractional_pools_of_no_images():
    assert F.fractional_max_pool3d(tracejit.zeros(0, 1, 4, 5, 4), 2, output_size=2).shape[0] == 0


def test_a_row_of_bias_for_keys_and_values():
    x, row = tracejit.rand(3, 2, 2), tracejit.rand(2)
    weights = (tracejit.rand(6, 2), tracejit.rand(6))
    rest = (False, 0.0, tracejit.eye(2), tracejit.zeros(2))
    found = [F.multi_head_attention_forward(x, x, x, 2, 1, *weights, b, b, *rest)[0]
             for b in (row, row.reshape(1, 1, 2))]  # fmt: skip
    assert tracejit.equal(*found)
