"""What classes of tensors are told, and the classes of results, compared with PyTorch."""

import pytest

import tracejit

pytestmark = pytest.mark.oracle

CALLS = """x + 1|1 - x|x * y|y @ x|x ** 2|2 / x|-x|abs(x)|x > 1|x[0]|x[None]|x.T|x.shape
x.sum()|x.max(0)|x.unbind()|x.split(1)|x.view(2, 1)|x.to(M.float64)|x.clone()|x.detach()|len(x)
x.requires_grad|x.tolist()|x.add_(1)|M.exp(x)|M.cat([y, x])|M.stack((x, x))
M.where(x > 0, x, y)|M.einsum('i,i->', x, y)|M.split(x, 1)|M.nn.functional.relu(x)
M.nn.functional.softmax(x, 0)|M.nn.functional.linear(x, y[None])
M.zeros_like(x)|bool(x[0])
""".replace("\n", "|").strip("|").split("|")  # fmt: skip


def told(module, call):
    """The names of the functions that a class is told of, and the class of what the call gives."""
    names = []

    class Named(module.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            names.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = module.tensor([1.0, 2.0]).as_subclass(Named)
    result = eval(call, {"M": module, "x": x, "y": module.ones(2)})
    parts = result if isinstance(result, (list, tuple)) else [result]
    return names, [type(part).__name__ for part in parts]


@pytest.mark.parametrize("call", CALLS)
def test_classes_are_told_what_pytorch_tells_them(call):
    torch = pytest.importorskip("torch")
    assert told(tracejit, call) == told(torch, call)
