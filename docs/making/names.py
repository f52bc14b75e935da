"""List the public names of each page of the reference, as a program finds them.

In: tracejit, imported. Out: pages, and {place: names}. Called by `live_names.py`, `hooks.py`.
"""

import functools
import importlib
import inspect
import types
from typing import Any

# file: (title, what the page holds, {place: names; None: all that are public there})
OURS = {
    "tracejit": ("script", "trace", "compare", "no_recompile"),
    "tracejit.jit": ("CompiledFunction", "RecompileError"),
    "tracejit.jit.CompiledFunction": ("report", "graph", "graphs"),
    "tracejit.debug.report": ("Report", "Recompile", "KernelReport"),
    "tracejit.debug.compare": ("Comparison",),
    "tracejit.debug.compare.Comparison": ("first_bad", "max_ulp", "write_repro"),
    "tracejit.config": ("override", "table"),
    "tracejit.datasets": None,
}
PAGES: dict[str, tuple[str, str, dict[str, tuple[str, ...] | None]]] = {
    "tracejit": ("tracejit: functions", "Functions of the package, under PyTorch's names.",
                 {"tracejit": None}),
    "tensor": ("tracejit.Tensor", "Methods and attributes of tensors.", {"tracejit.Tensor": None}),
    "nn": ("tracejit.nn", "Layers, containers, losses.", {"tracejit.nn": None}),
    "functional": ("tracejit.nn.functional", "The functions behind layers.",
                   {"tracejit.nn.functional": None}),
    "optim": ("tracejit.optim", "Optimizers and schedules of learning rates.",
              {"tracejit.optim": None, "tracejit.optim.lr_scheduler": None}),
    "linalg": ("tracejit.linalg", "Linear algebra.", {"tracejit.linalg": None}),
    "fft": ("tracejit.fft", "Fourier transforms.", {"tracejit.fft": None}),
    "special": ("tracejit.special", "Special functions.", {"tracejit.special": None}),
    "autograd": ("tracejit.autograd", "Gradients.",
                 {"tracejit.autograd": None,
                  "tracejit.autograd.functional": ("jacobian", "hessian", "vjp", "jvp", "hvp", "vhp"),
                  "tracejit.func": None}),
    "data": ("tracejit.utils.data", "Data sets, samplers and loaders.",
             {"tracejit.utils.data": None}),
    "jit": ("tracejit.jit", "The compiler's own module, and TorchScript's names.",
            {"tracejit.jit": None}),
}
FIRST = ("ours", "What is ours", "Names that PyTorch does not have, and the objects behind them.",
         OURS)
TOPICS = {
    "pointwise": "Elementwise", "reduction": "Reductions", "movement": "Shapes and views",
    "creation": "Creation", "random": "Random numbers",
}


def owner(path: str) -> Any:
    """Return the module or class with this dotted path."""
    parts, found = path.split("."), importlib.import_module("tracejit")
    for k, part in enumerate(parts[1:], 2):
        if isinstance(found, types.ModuleType):
            try:
                module = importlib.import_module(".".join(parts[:k]))
            except ModuleNotFoundError:
                module = None
            found = module if module is not None else getattr(found, part)
        else:
            found = getattr(found, part)
    return found


def is_public(path: str, name: str, found: Any) -> bool:
    """Return True for functions, ops and classes of the package that belong to the place."""
    if name.startswith("_") or isinstance(found, types.ModuleType):
        return False
    if "Tensor" in path:
        return callable(found) or isinstance(found, property)
    home = getattr(found, "__module__", None) or ""
    return callable(found) and (home.startswith("tracejit") or hasattr(found, "operands"))


def names_of(path: str) -> tuple[str, ...]:
    found = owner(path)
    names = getattr(found, "__all__", None) or dir(found)
    look = functools.partial(inspect.getattr_static, found) if inspect.isclass(found) else (
        functools.partial(getattr, found))
    return tuple(sorted(n for n in names if is_public(path, n, look(n)))) if names else ()


def all_pages() -> dict[str, tuple[str, str, dict[str, tuple[str, ...]]]]:
    """Return {file: (title, text, {place: names})}, with `None` made the names that are there."""
    key, *first = FIRST
    pages = {key: tuple(first), **PAGES}
    return {file: (title, text, {p: n if n is not None else names_of(p) for p, n in held.items()})
            for file, (title, text, held) in pages.items()}


@functools.cache
def members() -> dict[str, tuple[str, ...]]:
    """Return {place: names} of all pages."""
    found: dict[str, dict[str, None]] = {}
    for _, _, held in all_pages().values():
        for path, names in held.items():
            found.setdefault(path, {}).update(dict.fromkeys(names))
    return {path: tuple(names) for path, names in found.items()}
