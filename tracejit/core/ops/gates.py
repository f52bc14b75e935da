"""Gates: code in front of each public function that asks classes and modes.

In: the public functions, methods and properties. Out: the same objects, whose code looks at the
arguments first. A gate changes the code of a function in place, so that names taken before, keys of
tables and `is` see the function they saw. Until `stand` no function has one, and calls cost nothing
more. Called by `tracejit.overrides`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from tracejit.core.ops import overriding, sealing
from tracejit.core.ops.overriding import PLAIN, asking, carriers, has_carrier, inside

_ARGUMENT = "the gate"  # constant of the template that the gate replaces


class Gate:
    """Gate of a public function: asks classes and modes before the function runs.

    original    the function as it was
    function    the function that classes are told of: another one for operators and properties
    in_python   PyTorch writes it in Python: classes get the arguments with defaults under their
                names, and the class Tensor is asked, too
    operator    NotImplemented where nobody answers, as Python's operators want it
    """

    __slots__ = ("function", "in_python", "operator", "original", "signature", "title")

    def __init__(self, original: Callable[..., Any], function: Any, title: str,
                 in_python: bool = False, operator: bool = False) -> None:
        self.original, self.function, self.title = original, function, title
        self.in_python, self.operator = in_python, operator
        self.signature: Any = None  # of the function, known once the gate stands

    def through(self, arguments: tuple, named: dict) -> Any:
        """Run the call, or give the answer of a class or mode."""
        if named or asking.modes:
            plain = False
        else:
            plain = True
            for x in arguments:
                if type(x) not in PLAIN:
                    plain = False
                    break
        if plain or not self.asks(arguments, named, sys._getframe(2)):
            return self.original(*arguments, **named)
        return self.answer(arguments, named)

    def asks(self, arguments: tuple, named: dict, caller: Any) -> bool:
        """Return True if the call has a class or mode to ask, and comes from outside."""
        if not asking.modes and not (asking.classes
                                     and has_carrier((*arguments, *named.values()))):
            return False
        return not inside(caller)

    def answer(self, arguments: tuple, named: dict) -> Any:
        """Ask the classes and modes; TypeError where none answers."""
        given = (*arguments, *named.values())
        from_classes = asking.classes
        if self.in_python:
            arguments, named = self.bound(arguments, named)
        found = carriers(given, overriding.tensor_class() if self.in_python else None)
        found = found if from_classes else []
        keywords = named if named or self.in_python else None
        try:
            told(found)
            answer = overriding.ask(self.function, found, arguments, keywords)
        except TypeError:
            if self.operator:
                return NotImplemented
            raise
        if answer is NotImplemented and not found:
            return self.original(*arguments, **named)
        if answer is NotImplemented and not self.operator:
            raise TypeError(self.refusal(found))
        return answer

    def bound(self, arguments: tuple, named: dict) -> tuple[tuple, dict]:
        """Return the arguments with defaults; those that have a default go under their names."""
        try:
            call = self.signature.bind(*arguments, **named)
        except TypeError:
            return arguments, named
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for name, parameter in self.signature.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional.extend(call.arguments.get(name, ()))
            elif parameter.kind is parameter.VAR_KEYWORD:
                keywords.update(call.arguments.get(name, {}))
            elif parameter.default is parameter.empty and parameter.kind is not (
                    parameter.KEYWORD_ONLY):
                positional.append(call.arguments[name])
            else:
                keywords[name] = call.arguments.get(name, parameter.default)
        return tuple(positional), keywords

    def refusal(self, found: list[Any]) -> str:
        """Return the error of a call that no class answers, as PyTorch words it."""
        if self.in_python:
            types = [type(x) for x in found]
            return (f"no implementation found for '{self.title}' on types that implement "
                    f"{overriding.PROTOCOL}: {types}")
        lines = "\n".join(f"  - tensor subclass {type(x)}" for x in found)
        return (f"Multiple dispatch failed for '{self.title}'; all {overriding.PROTOCOL} handlers "
                f"returned NotImplemented:\n\n{lines}\n\nFor more information, try re-running with "
                "TORCH_LOGS=not_implemented")


def _nobody_listens(found: list[Any]) -> None:
    """Do nothing: no call is being recorded."""


_told: list[Callable[[list[Any]], None]] = [_nobody_listens]


def told(found: list[Any]) -> None:
    """Tell the tracer that classes are asked: a replay would not run their code."""
    _told[0](found)


def install_told(tell: Callable[[list[Any]], None]) -> None:
    """Install the function that tells a tracer; the eager room calls this."""
    _told[:] = [tell]


def stand(function: Any, gate: Gate) -> None:
    """Put the gate in front of a function: replace its code."""
    code = function.__code__.replace()
    gate.original = _as_it_was(function)
    overriding.gates[function] = gate
    function.__signature__ = gate.signature = inspect.signature(gate.original)
    function.__code__ = _gate_code(code, gate)


def _as_it_was(function: Any) -> Any:
    """Make a function of the same code, which has no gate."""
    found = FunctionType(function.__code__, function.__globals__, function.__name__,
                         function.__defaults__, function.__closure__)
    found.__kwdefaults__ = function.__kwdefaults__
    found.__dict__.update(function.__dict__)
    found.__doc__, found.__qualname__ = function.__doc__, function.__qualname__
    return found


_templates: dict[int, CodeType] = {}


def _gate_code(code: CodeType, gate: Gate) -> CodeType:
    """Return code that goes through the gate.

    Python wants it to have as many cells as the code it replaces.
    """
    count = len(code.co_freevars)
    template = _templates.get(count)
    if template is None:
        cells = [f"cell{k}" for k in range(count)]
        # The gate replaces the constant below. `if 0` reads the cells, so that the code has them.
        text = (f"def around({', '.join(cells)}):\n"
                "    def through(*arguments, **named):\n"
                f"        if 0: {' + '.join(cells) or 'pass'}\n"
                f"        return {_ARGUMENT!r}.through(arguments, named)\n"
                "    return through\n")
        made = compile(text, __file__, "exec")
        around = next(c for c in made.co_consts if isinstance(c, CodeType))
        template = next(c for c in around.co_consts if isinstance(c, CodeType))
        _templates[count] = template
    constants = tuple(gate if c == _ARGUMENT else c for c in template.co_consts)
    return sealing.sealed(template.replace(
        co_name=code.co_name, co_qualname=code.co_qualname, co_freevars=code.co_freevars,
        co_consts=constants))
