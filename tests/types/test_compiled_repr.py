"""`repr` of captured functions names the function and its place."""

from pathlib import Path

import tracejit
from tracejit import nn

FILE = Path(__file__).name


@tracejit.script
def step(x):
    return x * 2


class Net(nn.Module):
    @tracejit.script(fullgraph=True)
    def twice(self, x):
        return x * 2


def line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return 1 + next(k for k, line in enumerate(lines) if line.strip() == text)


def test_a_function_and_its_place() -> None:
    assert repr(step) == f"<tracejit.script of step at {FILE}:{line_of('@tracejit.script')}>"


def test_trace_and_local_functions() -> None:
    def inner(x):
        return x

    line = line_of("def inner(x):")
    assert repr(tracejit.trace(inner)) == f"<tracejit.trace of inner at {FILE}:{line}>"


def test_methods() -> None:
    line = line_of("@tracejit.script(fullgraph=True)")
    shown = f"<tracejit.script of Net.twice at {FILE}:{line}>"
    assert repr(Net.twice) == shown
    assert repr(Net().twice) == f"<bound method {shown}>"


def test_callables_without_code() -> None:
    class Scale:
        def __call__(self, x):
            return x * 2

    assert repr(tracejit.script(Scale())) == "<tracejit.script of Scale>"


def test_a_captured_function_may_print_another() -> None:
    @tracejit.script
    def outer(x):
        return x + len(repr(step))

    assert outer(tracejit.zeros(1)).item() == len(repr(step))
    assert outer(tracejit.zeros(1)).item() == len(repr(step))
