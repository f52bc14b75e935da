"""Show the reference what is really there: ops are installed while the package is imported.

In: griffe's static reading of tracejit. Out: the same tree, in which each public name of `PAGES`
is the object that a program gets, with its docstring as Markdown. Called by mkdocstrings.
"""

import inspect
import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))
from docstrings import markdown_of
from names import look_up, members, owner

KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: griffe.ParameterKind.positional_only,
    inspect.Parameter.POSITIONAL_OR_KEYWORD: griffe.ParameterKind.positional_or_keyword,
    inspect.Parameter.VAR_POSITIONAL: griffe.ParameterKind.var_positional,
    inspect.Parameter.KEYWORD_ONLY: griffe.ParameterKind.keyword_only,
    inspect.Parameter.VAR_KEYWORD: griffe.ParameterKind.var_keyword,
}


def signature_of(found: Any) -> inspect.Signature | None:
    """Return the signature; of an op without one of its own: its operands and attributes."""
    try:
        given = inspect.signature(found)
    except (TypeError, ValueError):
        return None
    if not hasattr(found, "operands") or "operands" not in given.parameters:
        return given
    asked = list(inspect.signature(found.infer).parameters.values())[len(found.operands):]
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    operands = [
        inspect.Parameter(name.lstrip("*"), inspect.Parameter.VAR_POSITIONAL)
        if name.startswith("*") else inspect.Parameter(name, positional)
        for name in found.operands
    ]
    later = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in asked
             if p.kind is not inspect.Parameter.VAR_KEYWORD]
    try:
        return inspect.Signature([*operands, *later])
    except ValueError:
        return None


def documented(found: Any) -> str:
    """Return the docstring of an object; of an op without one: its definition."""
    own = inspect.getdoc(found) or ""
    if not hasattr(found, "operands"):
        return own
    if own and own != inspect.getdoc(type(found)):
        return own
    if found.scalar:
        formula = found.scalar.replace("{", "").replace("}", "")
        return f"Op of each element. `{formula}`"
    return f"Op of kind `{found.kind}`; its arguments are those of PyTorch's function."


def parameters_of(signature: inspect.Signature | None) -> griffe.Parameters:
    made = griffe.Parameters()
    for one in signature.parameters.values() if signature else ():
        default = None if one.default is inspect.Parameter.empty else shown(one.default)
        made.add(griffe.Parameter(one.name, kind=KINDS[one.kind], default=default))
    return made


def shown(default: Any) -> str:
    """Return the text of a default; of a function its name, as its address changes."""
    text = repr(default)
    return getattr(default, "__name__", type(default).__name__) if " at 0x" in text else text


class LiveNames(griffe.Extension):
    """Put run-time objects into the tree that griffe read."""

    def on_package(self, *, pkg: griffe.Module, loader: Any, **kwargs: Any) -> None:
        if pkg.name != "tracejit":
            return
        for path, names in members().items():
            found = owner(path)
            self.add_module(pkg, path)
            for name in names:
                self.put(pkg, path, name, look_up(found, name))

    def add_module(self, pkg: griffe.Module, path: str) -> None:
        """Make a place for names whose module the static reading does not show."""
        try:
            place = pkg[path.partition(".")[2]] if "." in path else pkg
        except KeyError:
            parent, _, name = path.rpartition(".")
            self.add_module(pkg, parent)
            place = griffe.Module(name)
            (pkg[parent.partition(".")[2]] if "." in parent else pkg).set_member(name, place)

    def put(self, pkg: griffe.Module, path: str, name: str, found: Any) -> None:
        place = pkg[path.partition(".")[2]] if "." in path else pkg
        if isinstance(found, (staticmethod, classmethod)):
            found = found.__func__
        text = markdown_of(documented(found))
        docstring = griffe.Docstring(text) if text else None
        if inspect.isclass(found):
            made: Any = griffe.Class(name, docstring=docstring)
            init = griffe.Function("__init__", parameters=parameters_of(signature_of(found)))
            made.set_member("__init__", init)
        elif isinstance(found, property) or not callable(found):
            made = griffe.Attribute(name, docstring=docstring)
        else:
            made = griffe.Function(name, docstring=docstring,
                                   parameters=parameters_of(signature_of(found)))
        if place.is_alias:
            place = place.final_target
        place.set_member(name, made)
