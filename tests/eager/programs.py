"""Running one program under tracejit and under torch, and comparing everything it says."""

import re
import warnings

import numpy as np
import pytest

import tracejit


def outcome(program, module):
    """What a program gives, as plain data; an error becomes its type and text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(program(module))
        except Exception as error:
            return type(error).__name__, wording(str(error))


def plain(value):
    """Nested data with tensors as (dtype, shape, requires_grad, values)."""
    if isinstance(value, (list, tuple)):
        return [plain(x) for x in value]
    if hasattr(value, "requires_grad") and hasattr(value, "detach"):
        dtype = str(value.dtype).split(".")[-1]
        return dtype, tuple(value.shape), value.requires_grad, np.array(value.detach().tolist())
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value
    return wording(value) if isinstance(value, str) else value


def wording(text):
    """A message without what rightly differs: our name, its short forms of node names, advice."""
    text = text.replace("torch.", "tracejit.").split("Hint:")[0]
    text = re.sub(
        r"output (\d) of (?:torch::autograd::)?(\w+?)(?:Backward0)?,", r"output \1 of \2,", text
    )
    return re.sub(r"\s+", " ", text).strip()


def assert_alike(ours, theirs, path="result"):
    assert type(ours) is type(theirs), (path, ours, theirs)
    if isinstance(ours, (list, tuple)):
        assert len(ours) == len(theirs), (path, ours, theirs)
        for k, (x, y) in enumerate(zip(ours, theirs)):
            assert_alike(x, y, f"{path}[{k}]")
    elif isinstance(ours, np.ndarray):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6, err_msg=path)
    else:
        assert ours == theirs, (path, ours, theirs)


def check(program):
    """The program gives under tracejit what it gives under torch."""
    torch = pytest.importorskip("torch")
    assert_alike(outcome(program, tracejit), outcome(program, torch))
