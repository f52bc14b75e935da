"""Calls in `@script` code: the user's functions are rewritten, and regions have no effects outside.

In: a function that rewritten code is about to call. Out: the function to call instead. In a region,
a function whose effects cannot be seen is refused before it runs. Called by `control.py`.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
import warnings
from collections import deque
from collections.abc import Callable
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops import joining
from tracejit.core.ops.record import Op
from tracejit.jit.capture.access_path import CACHED
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.deferred_warnings import deferred_warn
from tracejit.jit.capture.dynamic_names import is_user_class
from tracejit.jit.capture.fingerprint import function_of, module_name
from tracejit.jit.capture.foreign_compilers import is_compiled, unseen_call_of
from tracejit.jit.capture.host_calls import replacement
from tracejit.jit.capture.location import is_internal_code
from tracejit.jit.capture.looking import (
    ABSENT,
    attribute_of,
    class_attribute,
    is_a,
    is_exactly,
    is_iterator,
    name_of_class,
    qualname_of_class,
    title,
)
from tracejit.jit.capture.memoized_calls import CALLING, asking_again, handing_on
from tracejit.jit.capture.plain_arguments import (
    concretizing_call,
    is_cython,
    named_plainly,
    of_arrays,
    plain_text,
    power,
    wants_ints,
    wants_texts,
    with_plain_texts,
)
from tracejit.jit.capture.plain_pickles import is_dumps, of_plain_data
from tracejit.jit.capture.pure import is_of_arrays, is_pure
from tracejit.jit.capture.recursion import user_limit
from tracejit.jit.capture.rewrite_expressions import RUNTIME
from tracejit.jit.capture.rolled import StackedList, length
from tracejit.jit.capture.rolled import joined as in_one
from tracejit.jit.capture.runtime_numbers import OF_FLOATS, is_call_sym
from tracejit.jit.capture.scalars import SymNumber
from tracejit.jit.capture.sharing import known_as, known_ones
from tracejit.jit.capture.source import is_converted, is_understood
from tracejit.jit.capture.speculation import changes_nothing
from tracejit.jit.capture.watcher import USER_CALL_WRAPPERS
from tracejit.jit.ir.sizes import SymInt

_OF_ARRAYS = type(np.mean)
_CONTAINERS = (list, dict, set, bytearray, deque)
_FIXED: tuple[type, ...] = (
    Tensor, int, float, complex, str, bytes, tuple, frozenset, range, slice, type(None), type,
    type({}.keys()), type({}.values()), type({}.items()),
)  # fmt: skip
_BOUND = (BuiltinFunctionType, MethodWrapperType, MethodType)
_UNBOUND = (MethodDescriptorType, WrapperDescriptorType)
_C_FUNCTIONS = (BuiltinFunctionType, MethodWrapperType, MethodDescriptorType, WrapperDescriptorType)
_IN_PLACE = frozenset(  # functions that change an argument
    "next setitem delitem iadd iand iconcat ifloordiv ilshift imatmul imod imul ior ipow irshift "
    "isub itruediv ixor setattr delattr insort insort_left insort_right".split()
)
_READERS = frozenset(  # methods of containers that change nothing
    "get keys values items copy index count __getitem__ __len__ __contains__ __iter__ union "
    "intersection difference issubset issuperset isdisjoint".split()
)
_SEARCHED = (list, tuple, dict, set, frozenset)
_FINDS = frozenset("get pop setdefault add discard remove index count __contains__".split())
# Methods of tensors that change history or gradients.
_UNSEEN = frozenset({"register_hook", "retain_grad", "requires_grad_", "backward"})
_DEBUGGERS = frozenset("pdb bdb ipdb pudb IPython remote_pdb web_pdb".split())
_LIBRARIES = ("math", "operator", "functools", "itertools", "typing", "numbers")


def _opaque(tracer: Any, function: Any) -> Callable[..., Any]:
    """Wrap a function of another compiler: its calls break the graph and get plain numbers."""
    run = concretizing_call(function)

    @functools.wraps(run)
    def call(*args: Any, **kwargs: Any) -> Any:
        tracer.add_break(*unseen_call_of(function))
        return run(*args, **kwargs)

    return call


USER_CALL_WRAPPERS.update(c for c in _opaque.__code__.co_consts if is_a(c, CodeType))


def convert_call(tracer: Any, function: Any) -> Any:
    """Return what recorded code calls instead of a function.

    Functions and methods of the user's are rewritten. Builtins and C code that take only plain
    values, or whose results may be pending, are wrapped. Anything else stays as it is.
    """
    if _stops(function):
        return function
    joined = _joining(function)
    if joined is not None:
        return joined
    if any(function is f for f in CALLING):
        return handing_on(tracer, function)
    deferred = replacement(function)
    if deferred is not None:
        return deferred
    if function is id or function is hash:
        return _with_known_tensors(tracer, tracer.root.identities.numbering(function))
    if function is set or function is frozenset:
        return _of_known_tensors(tracer, function)
    if function is sys.getrecursionlimit and not tracer.cacheable:  # the watcher is off
        return user_limit
    if function is warnings.warn:
        return deferred_warn
    if _wants_tensor(function):
        return _of_tensors(function)
    if type(function) is FunctionType:
        return _convert_function(tracer, function)
    if type(function) is MethodType and type(function.__func__) is FunctionType:
        return MethodType(_convert_function(tracer, function.__func__), function.__self__)
    if type(function_of(function)) is CACHED:
        return asking_again(tracer, function)
    if is_compiled(function):
        return _opaque(tracer, function)
    if type(function) is functools.partial and type(function_of(function.func)) is CACHED:
        again = asking_again(tracer, function.func)
        return functools.partial(again, *function.args, **function.keywords)
    if is_cython(function):
        return concretizing_call(function)
    if type(function) is _OF_ARRAYS:
        return of_arrays(function)
    if is_dumps(function):
        return of_plain_data(function)
    special = class_attribute(type(function), "__call__")
    if type(special) is FunctionType and not is_internal_code(special.__code__):
        return MethodType(_convert_function(tracer, special), function)
    if function is pow:
        return power
    if type(function) is BuiltinFunctionType and function in OF_FLOATS:
        return _on_numbers(function)
    owner = function.__objclass__ if is_a(function, _UNBOUND) else None
    if type(function) is MethodWrapperType and is_exactly(function.__self__, (int, float)):
        owner = type(function.__self__)
    plain = type(function) is BuiltinFunctionType and (
        is_of_arrays(function) or not is_pure(function) or wants_ints(function)
    )
    if owner in (list, int, float) or plain:
        function = concretizing_call(function)
    elif wants_texts(function):
        function = with_plain_texts(function)
    return _finding(tracer, function)


def _stops(function: Any) -> bool:
    """Return True for `breakpoint`, and for a debugger's `set_trace`: it stops in the frame that
    calls it, which must be the user's."""
    if function is breakpoint:
        return True
    if type(function) is not FunctionType or function.__name__ != "set_trace":
        return False
    return str(function.__module__).partition(".")[0] in _DEBUGGERS


def _finding(tracer: Any, function: Any) -> Any:
    """Wrap a method that looks for an element in a container: the element may be a tensor."""
    wraps = type(function) is FunctionType
    inner = function.__dict__.get("__wrapped__") if wraps else function
    owner = inner.__self__ if is_a(inner, _BOUND) else None
    finds = is_exactly(owner, _SEARCHED) and function.__name__ in _FINDS
    return _with_known_tensors(tracer, function) if finds else function


def _with_known_tensors(tracer: Any, function: Any) -> Any:
    """Wrap a function that asks which object its first argument is: identify a tensor first."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        known = [known_as(tracer, x) if is_a(x, Tensor) else x for x in args[:1]]
        return function(*known, *args[1:], **kwargs)

    return call


USER_CALL_WRAPPERS.update(c for c in _with_known_tensors.__code__.co_consts if is_a(c, CodeType))


def _of_known_tensors(tracer: Any, kind: type) -> Any:
    """Wrap `set` or `frozenset`: identify tensors first, so that one tensor is one element."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        if len(arguments) != 1 or keywords:
            return kind(*arguments, **keywords)
        return kind(known_ones(tracer, arguments[0]))

    return call


USER_CALL_WRAPPERS.update(c for c in _of_known_tensors.__code__.co_consts if is_a(c, CodeType))


def _convert_function(tracer: Any, function: FunctionType) -> Any:
    found = tracer.root.adapt(function)
    foreign = (found is function and not is_internal_code(function.__code__)
               and not is_understood(function))
    return concretizing_call(function) if foreign else found


def _wants_tensor(function: Any) -> bool:
    """Return True for a function of tracejit's that takes a tensor first."""
    if type(function) is Op:
        return function.kind == "pointwise"
    if type(function) is not FunctionType or not is_internal_code(function.__code__):
        return False
    found: Any = inspect.unwrap(function)
    if type(found) is Op:
        return found.kind == "pointwise"
    of_ops = (found.__module__ or "").startswith("tracejit.core.ops.")
    return of_ops and found.__code__.co_varnames[:1] in (("input",), ("self",))


def _of_tensors(function: Callable[..., Any]) -> Any:
    """Wrap a function that refuses a number in place of its tensor: give it the plain number,
    unless another argument is a tensor."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        others = (*args[1:], *kwargs.values())
        if args and is_a(args[0], SymNumber) and not any(
                is_a(x, Tensor) for x in others):
            args = (args[0].concretize(), *args[1:])
        return function(*args, **kwargs)

    return call


USER_CALL_WRAPPERS.update(c for c in _of_tensors.__code__.co_consts if is_a(c, CodeType))


def _on_numbers(function: Any) -> Any:
    """Wrap a function of `math`: runtime numbers give an expression, not a value."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        runtime = [x for x in args if is_call_sym(x)]
        others = [x for x in args if not is_call_sym(x)]
        if kwargs or not runtime or any(not is_exactly(x, (int, float)) for x in others):
            return function(*args, **kwargs)
        return runtime[0].sym_env.apply(OF_FLOATS[function], args)

    return call


USER_CALL_WRAPPERS.update(c for c in _on_numbers.__code__.co_consts if is_a(c, CodeType))


def _joining(function: Any) -> Callable | None:
    """Return a `len`, `type`, `stack` or `cat` that leaves a `StackedList` whole; else None."""
    if function is len:
        return _len
    if function is type:
        return _type_of
    if type(function) is not FunctionType:
        return None
    taking_out = is_internal_code(function.__code__) and getattr(function, "__wrapped__", None)
    together = _TOGETHER.get(taking_out or function)
    if together is None:
        return None

    def joined(*args: Any, **keywords: Any) -> Any:
        if len(args) in (1, 2) and is_a(args[0], StackedList) and set(keywords) <= {"dim"}:
            dim = (*args[1:], *keywords.values(), 0)[0]
            whole = in_one(args[0], together, dim) if type(dim) is int else None
            if whole is not None:
                return whole
        return function(*args, **keywords)

    return joined


def _len(*arguments: Any) -> Any:
    """Compute `len(...)`: a size for a tensor, or for a list that a loop appended to."""
    if len(arguments) == 1:
        (x,) = arguments
        if is_a(x, StackedList):
            return length(x)
        if is_a(x, Tensor) and type(x).__len__ is Tensor.__len__ and x.shape:
            return x.shape[0]
    return len(*arguments)


USER_CALL_WRAPPERS.add(_len.__code__)


def _type_of(*arguments: Any) -> Any:
    """Compute `type(...)`: stand-ins for numbers and lists give the type that they stand for."""
    if len(arguments) != 1:
        return type(*[named_plainly(plain_text(x)) for x in arguments])
    (x,) = arguments
    if is_a(x, SymNumber):
        return x.kind
    return list if is_a(x, StackedList) else int if type(x) is SymInt else type(x)


_TOGETHER: dict[Any, Any] = {
    getattr(joining, name): joining.stack if name == "stack" else joining.cat
    for name in ("stack", "cat", "concat", "concatenate") if hasattr(joining, name)
}


def convert_call_in_region(tracer: Any, function: Any) -> Any:
    """Return what a region calls instead; raise RegionRefused if the call may be seen outside."""
    kind = type(function)
    owner = function.__self__ if is_a(function, _BOUND) else None
    if is_a(owner, _CONTAINERS):
        return _checked_container(tracer, function, owner)
    if kind is MethodType:
        target = function.__func__
        if is_a(function.__self__, Tensor) and target.__name__ in _UNSEEN:
            raise RegionRefused(f"it calls {target.__name__}")
        if type(target) is FunctionType:
            return MethodType(convert_call_in_region(tracer, target), function.__self__)
        return _checked_builtin(tracer, function)  # a method of C code, as Cython makes
    if kind is FunctionType:
        return _checked_function(tracer, function)
    if function is type:
        return _type_of
    if function is id or function is hash:
        return convert_call(tracer, function)
    if is_a(function, type):
        return _guarding(tracer, _checked_class(function))
    builtin = is_a(function, (BuiltinFunctionType, MethodWrapperType))
    code = None if builtin else _code_of_calls(kind)
    if kind is functools.partial:
        convert_call_in_region(tracer, function.func)
    if code is None:
        return _checked_builtin(tracer, function)
    if is_internal_code(code):
        return function  # a module: its forward is converted when it is called
    return MethodType(convert_call_in_region(tracer, kind.__call__), function)


def _code_of_calls(kind: type) -> CodeType | None:
    """Return the code that calling an instance runs; None if it is not Python."""
    return attribute_of(class_attribute(kind, "__call__"), "__code__")


def _checked_function(tracer: Any, function: FunctionType) -> Any:
    code = function.__code__
    if is_internal_code(code):
        return _guarding(tracer, convert_call(tracer, function))
    found = tracer.root.adapt(function)
    if found is function and not is_understood(function) and not _is_made_here(code):
        module = (function.__module__ or "").partition(".")[0]
        if module not in _LIBRARIES:
            raise RegionRefused(f"it calls {function.__qualname__}, whose source tracejit cannot "
                                "rewrite")
    return found


def _is_made_here(code: CodeType) -> bool:
    """Return True for a function that a captured one defines: it was rewritten along with that."""
    return is_converted(code) and (RUNTIME in code.co_freevars or changes_nothing(code))


def _checked_class(cls: type) -> Any:
    home = module_name(cls).partition(".")[0]
    own = home in ("builtins", "tracejit", "collections") and not is_user_class(cls)
    if own or class_attribute(cls, "_fields") is not ABSENT or issubclass(cls, BaseException):
        return cls
    raise RegionRefused(f"it makes a {qualname_of_class(cls)}")


def _checked_builtin(tracer: Any, function: Any) -> Any:
    if not is_harmless(function):
        return _refuse(function)
    return _guarding(tracer, with_plain_texts(function) if wants_texts(function) else function)


def is_harmless(function: Any) -> bool:
    """Return True if a C function computes from its arguments and changes none of them."""
    owner = attribute_of(function, "__self__")
    if type(function) is operator.methodcaller:
        return False
    if owner is None or is_a(owner, ModuleType):
        in_place = attribute_of(function, "__name__", "") in _IN_PLACE or _of_mutable(function)
        return is_pure(function) and not in_place
    return is_a(owner, _FIXED)


def _of_mutable(function: Any) -> bool:
    """Return True for an unbound method that may change its object, such as `list.append`."""
    owner = attribute_of(function, "__objclass__")
    return owner is not None and not issubclass(owner, _FIXED) and function.__name__ not in _READERS


def _guarding(tracer: Any, function: Any) -> Any:
    """Wrap a function for a region: refuse outer iterators, and arguments with effects."""

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        for x in (*args, *kwargs.values()):
            check_iterable(tracer, x)
            _check_passed(tracer, x)
        result = function(*args, **kwargs)
        if is_iterator(result):
            tracer.created_here.append(result)
        return result

    return call


USER_CALL_WRAPPERS.update(c for c in _guarding.__code__.co_consts if is_a(c, CodeType))


def _check_passed(tracer: Any, x: Any) -> None:
    """Raise RegionRefused for an argument that is C code with effects: `map` would call it."""
    while type(x) is functools.partial:
        x = x.func
    if type(x) is operator.methodcaller:
        _refuse(x)
    owner = attribute_of(x, "__self__")
    if is_a(x, (BuiltinFunctionType, MethodWrapperType)) and is_a(owner, _CONTAINERS):
        if x.__name__ not in _READERS and not tracer.is_created_here(owner):
            _refuse(x)
    elif is_a(x, _C_FUNCTIONS) and not is_harmless(x):
        _refuse(x)


def check_iterable(tracer: Any, x: Any) -> None:
    """Raise RegionRefused for an iterator made outside the region, which would consume it."""
    if is_iterator(x) and not tracer.is_created_here(x):
        raise RegionRefused(f"it consumes a {name_of_class(type(x))} made outside it")


def _checked_container(tracer: Any, function: Any, owner: Any) -> Any:
    name = function.__name__
    if name in _READERS or tracer.is_created_here(owner):
        return _finding(tracer, function)
    if is_a(owner, list) and name == "append":
        return tracer.appending(owner)
    raise RegionRefused(f"it changes a {type(owner).__name__} made outside it ({name})")


def _refuse(function: Any) -> Any:
    name = title(function)
    raise RegionRefused(f"it calls {name}, and tracejit cannot see its effects")
