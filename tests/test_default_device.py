"""set_default_device, and devices as contexts: PyTorch's order of who decides; captured calls see
it."""

from __future__ import annotations

import threading
import warnings

import pytest

import tracejit
from tracejit.core.memory import devices


@pytest.fixture(autouse=True)
def restored():
    yield
    tracejit.set_default_device(None)


MAKERS = {
    "tensor": lambda **d: tracejit.tensor([1.0], **d), "zeros": lambda **d: tracejit.zeros(2, **d),
    "ones": lambda **d: tracejit.ones(2, **d), "full": lambda **d: tracejit.full((2,), 1.0, **d),
    "empty": lambda **d: tracejit.empty(2, **d), "arange": lambda **d: tracejit.arange(2, **d),
    "linspace": lambda **d: tracejit.linspace(0, 1, 2, **d),
    "eye": lambda **d: tracejit.eye(2, **d), "rand": lambda **d: tracejit.rand(2, **d),
    "randn": lambda **d: tracejit.randn(2, **d), "randperm": lambda **d: tracejit.randperm(2, **d),
    "randint": lambda **d: tracejit.randint(3, (2,), **d),
    "normal": lambda **d: tracejit.normal(0.0, 1.0, (2,), **d),
    "as_tensor": lambda **d: tracejit.as_tensor([1.0], **d),
    "linear": lambda **d: tracejit.nn.Linear(2, 2, **d),
    "tril_indices": lambda **d: tracejit.tril_indices(2, 2, **d),
}  # fmt: skip


@pytest.mark.skipif(tracejit.cuda.is_available(), reason="what is asked for works with a GPU")
@pytest.mark.parametrize("name", MAKERS)
def test_new_tensors_go_there(name):
    """Without a GPU, to ask for one is an error: so the default was asked."""
    with tracejit.device("cuda:0"):
        with pytest.raises(tracejit.DeviceUnavailable):
            MAKERS[name]()
        MAKERS[name](device="cpu")
        with tracejit.device("cpu"):
            MAKERS[name]()
    MAKERS[name]()


def test_what_has_a_place_stays_there():
    x = tracejit.ones(2)
    with tracejit.device("cuda:0"):
        made = [tracejit.zeros_like(x), x.new_ones(2), x + 1, x.clone(), tracejit.bernoulli(x)]
        tracejit.rand(2, out=x)
    assert {str(t.device) for t in made} == {"cpu"}


def test_defaults_nest_and_are_of_the_thread():
    assert tracejit.get_default_device() == tracejit.device("cpu")
    tracejit.set_default_device("cuda:1")
    with tracejit.device("cpu"):
        assert str(tracejit.get_default_device()) == "cpu"
        with tracejit.device("cuda:2"):
            assert str(tracejit.get_default_device()) == "cuda:2"
    assert str(tracejit.get_default_device()) == "cuda:1"
    seen = []
    thread = threading.Thread(target=lambda: seen.append(str(tracejit.get_default_device())))
    thread.start()
    thread.join()
    assert seen == ["cpu"]

    @tracejit.device("cuda:3")
    def inside():
        return str(tracejit.get_default_device())

    assert inside() == "cuda:3"
    with pytest.raises(ZeroDivisionError), tracejit.device("cpu"):
        1 / 0  # noqa: B018
    assert devices.default.outer == []


def test_captured_calls_see_it():
    captured = tracejit.script(lambda x: x + tracejit.ones(2), mode="graph")
    x = tracejit.ones(2)
    captured(x)
    with tracejit.device("cuda:0"), pytest.raises(RuntimeError):
        captured(x)
    with tracejit.device("cpu"):
        captured(x)
    assert captured(x).tolist() == [2.0, 2.0]
    assert "default device" in str(captured.report().recompiles[0])

    def inside(x):
        with tracejit.device("cpu"):
            return x + tracejit.ones(2)

    captured = tracejit.script(inside, mode="graph")
    assert captured(x).tolist() == captured(x).tolist() == [2.0, 2.0]
    assert captured.report().breaks == []


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["DoubleTensor", "HalfTensor", "FloatTensor", "LongTensor"])
@pytest.mark.parametrize("as_text", [True, False])
def test_the_default_type_is_set_by_its_older_name(name, as_text):
    torch = pytest.importorskip("torch")

    def made(t):
        kind = f"{t.__name__}.{name}" if as_text else getattr(t, name)
        try:
            t.set_default_tensor_type(kind)
            x = t.zeros(2)
            return str(x.dtype).rpartition(".")[2], str(x.device), str(t.get_default_device())
        except TypeError as error:
            return str(error)
        finally:
            t.set_default_dtype(t.float32)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert made(tracejit) == made(torch)


def test_what_is_no_type_is_refused_as_default():
    with pytest.raises(TypeError, match="invalid type object"):
        tracejit.set_default_tensor_type(tracejit.float32)
