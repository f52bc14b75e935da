"""Adaptive softmax, attention as a function, and memory that is shared, beside PyTorch's."""

import os

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def layers(**options):
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 5, 9], div_value=2.0, **options)
    ours = tracejit.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 5, 9], div_value=2.0, **options)
    ours.load_state_dict({k: tracejit.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    assert repr(ours) == repr(theirs)
    return ours, theirs


def close(got, want):
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), 1e-4, 1e-6)


@pytest.mark.parametrize("targets", [[0, 4, 11, 2, 5], [0, 1, 2, 0, 1], [9, 9, 3, 3, 3], 4])
def test_adaptive_softmax(targets):
    ours, theirs = layers(head_bias=True)
    x = np.random.default_rng(0).normal(size=(5, 8) if isinstance(targets, list) else (8,))
    got = ours(tracejit.tensor(x).float(), tracejit.tensor(targets))
    want = theirs(torch.tensor(x).float(), torch.tensor(targets))
    got.loss.backward()
    want.loss.backward()
    close(got.output, want.output)
    close(got.loss, want.loss)
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters()):
        assert (p.grad is None) == (q.grad is None), name
        if q.grad is not None:
            close(p.grad, q.grad)


def test_adaptive_softmax_of_all_classes():
    ours, theirs = layers()
    x = np.random.default_rng(1).normal(size=(6, 8)).astype(np.float32)
    close(ours.log_prob(tracejit.tensor(x)), theirs.log_prob(torch.tensor(x)))
    assert ours.predict(tracejit.tensor(x)).tolist() == theirs.predict(torch.tensor(x)).tolist()
    captured = tracejit.script(ours, mode="graph")
    close(captured.predict(tracejit.tensor(x)), theirs.predict(torch.tensor(x)))
    for k in (0, 1):
        found = captured(tracejit.tensor(x), tracejit.tensor([k, 4, 11, 2, 5, k]))
        close(found.loss, theirs(torch.tensor(x), torch.tensor([k, 4, 11, 2, 5, k])).loss)


@pytest.mark.parametrize(("cutoffs", "target"), [
    ([], None), ([3, 2], None), ([0, 2], None), ([12], None), ([3], [12, 0]), ([3], [[0], [1]]),
    ([3], [0, 1, 2]), ([3], 0),
])
def test_adaptive_softmax_refuses_what_pytorch_refuses(cutoffs, target):
    def run(library):
        layer = library.nn.AdaptiveLogSoftmaxWithLoss(4, 12, cutoffs)
        layer(library.ones(2, 4), library.tensor(target))

    with pytest.raises(Exception) as theirs:
        run(torch)
    with pytest.raises(type(theirs.value)):
        run(tracejit)


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("separate", [False, True])
def test_attention_as_a_function(separate, static):
    rng = np.random.default_rng(2)

    def numbers(*shape):
        return rng.normal(size=shape)

    arrays = {"query": numbers(3, 2, 4), "key": numbers(5, 2, 4), "value": numbers(5, 2, 4)}
    weights = {"in_proj_weight": numbers(12, 4), "in_proj_bias": numbers(12)}
    if separate:
        weights |= {"in_proj_weight": None, "q_proj_weight": numbers(4, 4),
                    "k_proj_weight": numbers(4, 4), "v_proj_weight": numbers(4, 4)}
    bias = {"bias_k": None if static else numbers(1, 1, 4),
            "bias_v": None if static else numbers(1, 1, 4)}
    kept = {"static_k": numbers(4, 5, 2), "static_v": numbers(4, 5, 2)} if static else {}
    mask = numbers(3, 5)

    def run(library):
        def made(x):
            return library.tensor(x) if isinstance(x, np.ndarray) else x

        given = {k: made(v) for k, v in {**arrays, **weights, **bias, **kept}.items()}
        return library.nn.functional.multi_head_attention_forward(
            embed_dim_to_check=4, num_heads=2, add_zero_attn=True, dropout_p=0.0,
            out_proj_weight=made(np.eye(4)), out_proj_bias=made(np.ones(4)),
            attn_mask=made(mask), use_separate_proj_weight=separate, **given)

    for got, want in zip(run(tracejit), run(torch)):
        close(got, want)


def test_memory_that_processes_share():
    x = tracejit.ones(3).share_memory_()
    layer = tracejit.nn.Linear(2, 1).share_memory()
    child = os.fork()
    if not child:
        x.add_(1)
        os._exit(0)
    os.waitpid(child, 0)
    assert x.tolist() == [2.0] * 3 and x.is_shared() and layer.weight.is_shared()
    assert not tracejit.ones(3).is_shared() and not x.clone().is_shared()
    view = (y := tracejit.ones(3))[1:]
    with pytest.raises(NotImplementedError, match="other tensors"):
        y.share_memory_()
    assert view.pin_memory().tolist() == [1.0, 1.0] and not view.pin_memory().is_pinned()
