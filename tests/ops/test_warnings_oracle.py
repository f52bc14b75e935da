"""What PyTorch warns of is warned of here, in its words."""

import warnings

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

CALLS = """\
F.mse_loss(t.ones(2), t.ones(2, 1))
F.softmax(t.ones(2))
F.softmax(t.ones(2), 0)
F.log_softmax(t.ones(2, 2))
F.softmin(t.ones(2, 2))
nn.Softmax()(t.ones(2))
nn.LogSoftmax()(t.ones(2, 2, 2))
F.gumbel_softmax(t.ones(2, 2))
nn.MSELoss(size_average=False)(t.ones(2), t.ones(2))
nn.KLDivLoss()(t.ones(2), t.ones(2))
F.dropout1d(t.ones(2, 2))
F.dropout2d(t.ones(2, 2))
F.dropout2d(t.ones(2, 2, 2))
F.dropout2d(t.ones(2, 2, 2, 2))
F.dropout3d(t.ones(2, 2))
F.dropout3d(t.ones(2, 2, 2, 2))
F.upsample(t.ones(1, 1, 2, 2), scale_factor=2)
nn.Upsample(scale_factor=2)(t.ones(1, 1, 2, 2))
F.grid_sample(t.ones(1, 1, 2, 2), t.zeros(1, 2, 2, 2))
F.grid_sample(t.ones(1, 1, 2, 2), t.zeros(1, 2, 2, 2), align_corners=False)
F.affine_grid(t.ones(1, 2, 3), (1, 1, 2, 2))
F.affine_grid(t.ones(1, 2, 3), (1, 1, 1, 2), align_corners=True)
t.ones(2).new_tensor(t.ones(2))
t.ones(2).new_tensor([1.0])
t.tensor(t.ones(2))
t.std(t.ones(1))
t.var(t.ones(1))
t.ones(1, 2).std(0)
t.ones(1, 2).std(0, correction=0)
t.var_mean(t.ones(1))
t.ones(2, 2).var(0)
t.stft(t.ones(8), 4, return_complex=True)
t.stft(t.ones(8), 4, win_length=1, return_complex=True)
t.istft(t.ones(3, 9, dtype=t.complex64), 4)
t.istft(t.ones(3, 9, dtype=t.complex64), 4, window=t.ones(4), length=20)
""".splitlines()


def seen(library, call):
    names = {"t": library, "F": library.nn.functional, "nn": library.nn}
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        eval(call, names)
    texts = [str(w.message).partition("(Triggered")[0].strip() for w in found]
    return [(w.category, text.replace("tracejit", "torch")) for w, text in zip(found, texts)]


@pytest.mark.parametrize("call", CALLS)
def test_warnings(call):
    assert seen(tracejit, call) == seen(torch, call)
