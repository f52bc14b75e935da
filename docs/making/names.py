"""List the public names of each page of the reference, as a program finds them.

In: tracejit, imported. Out: pages, and {place: names}. Called by `live_names.py`, `hooks.py`.
"""

import functools
import importlib
import inspect
import types
from collections.abc import Callable
from typing import Any


def letters(first: str, last: str) -> Callable[[str, Any], bool]:
    """Choose functions that begin with these letters, but for classes and what works in place."""
    return lambda name, found: (first <= name[0] <= last and not is_in_place(name, found)
                                and not inspect.isclass(found))


def is_in_place(name: str, found: Any) -> bool:
    return name.endswith("_")


def is_other(name: str, found: Any) -> bool:
    return not is_in_place(name, found)


def is_class(name: str, found: Any) -> bool:
    return inspect.isclass(found)


# file: (title, what the page holds, {place: names, or what chooses them; None: all public ones})
OURS = {
    "tracejit": ("script", "compare", "no_recompile"),
    "tracejit.jit": ("trace", "CompiledFunction", "RecompileError"),
    "tracejit.jit.CompiledFunction": None,
    "tracejit.debug.report": ("Report", "Recompile", "KernelReport"),
    "tracejit.debug.compare": ("Comparison",),
    "tracejit.debug.compare.Comparison": ("first_bad", "max_ulp", "write_repro"),
    "tracejit.config": ("override", "table"),
    "tracejit.datasets": None,
}
PAGES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "functions_a_c": ("Functions a to c", "Functions of `tracejit`, under PyTorch's names.",
                      {"tracejit": letters("a", "c")}),
    "functions_d_k": ("Functions d to k", "Functions of `tracejit`, continued.",
                      {"tracejit": letters("d", "k")}),
    "functions_l_q": ("Functions l to q", "Functions of `tracejit`, continued.",
                      {"tracejit": letters("l", "q")}),
    "functions_r_z": ("Functions r to z", "Functions of `tracejit`, continued.",
                      {"tracejit": letters("r", "z")}),
    "functions_in_place": ("Functions in place", "Functions that write their first argument.",
                           {"tracejit": is_in_place}),
    "types": ("Types", "Classes of `tracejit`.", {"tracejit": is_class}),
    "tensor": ("tracejit.Tensor", "Methods and attributes of tensors.",
               {"tracejit.Tensor": is_other}),
    "tensor_in_place": ("Tensor: in place", "Methods of tensors that write the tensor.",
                        {"tracejit.Tensor": is_in_place}),
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
                  "tracejit.autograd.functional":
                      ("jacobian", "hessian", "vjp", "jvp", "hvp", "vhp"),
                  "tracejit.func": None}),
    "data": ("tracejit.utils.data", "Data sets, samplers and loaders.",
             {"tracejit.utils.data": None}),
    "distributed": ("tracejit.distributed", "Several processes.",
                    {"tracejit.distributed": None, "tracejit.distributed.optim": None,
                     "tracejit.distributed.checkpoint": None,
                     "tracejit.nn.parallel": ("DistributedDataParallel",)}),
    "jit": ("tracejit.jit", "The compiler's own module, and TorchScript's names.",
            {"tracejit.jit": None}),
}
FIRST = ("ours", "Names of our own",
         "Names that PyTorch does not have, and the objects behind them.", OURS)


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
    if inspect.isclass(owner(path)):
        return callable(found) or isinstance(found, property)
    home = getattr(found, "__module__", None) or ""
    return callable(found) and (home.startswith("tracejit") or hasattr(found, "operands"))


def names_of(path: str, chosen: Any) -> tuple[str, ...]:
    """Return the names at a place: those given, or the public ones that are chosen."""
    if isinstance(chosen, tuple):
        return chosen
    found = owner(path)
    names = dir(found) if inspect.isclass(found) else getattr(found, "__all__", None) or dir(found)
    here = [(n, look_up(found, n)) for n in sorted(set(names))]
    return tuple(n for n, one in here
                 if is_public(path, n, one) and (chosen is None or chosen(n, one)))


def look_up(found: Any, name: str) -> Any:
    """Return what has the name; of a class the descriptor itself."""
    if inspect.isclass(found):
        return inspect.getattr_static(found, name)
    return getattr(found, name)


def all_pages() -> dict[str, tuple[str, str, dict[str, tuple[str, ...]]]]:
    """Return {file: (title, text, {place: names})}, with `None` made the names that are there."""
    key, *first = FIRST
    pages = {key: tuple(first), **PAGES}
    return {file: (title, text, {path: names_of(path, chosen) for path, chosen in held.items()})
            for file, (title, text, held) in pages.items()}


@functools.cache
def members() -> dict[str, tuple[str, ...]]:
    """Return {place: names} of all pages."""
    found: dict[str, dict[str, None]] = {}
    for _, _, held in all_pages().values():
        for path, names in held.items():
            found.setdefault(path, {}).update(dict.fromkeys(names))
    return {path: tuple(names) for path, names in found.items()}
