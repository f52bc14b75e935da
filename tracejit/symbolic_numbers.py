"""Classes of sizes that are not known yet, which programs ask for: `isinstance(n, torch.SymInt)`.

In: any object. Out: False: sizes and numbers of a captured function are ints, floats and bools to
the code that it runs.
"""

from __future__ import annotations

from typing import Any, NoReturn

_TEXT = "{} numbers are made by the compiler alone"


class SymInt:
    """Int that is not known yet: there are no objects of this class.

    >>> isinstance(3, (int, SymInt)), isinstance(2.0, SymInt)
    (True, False)
    """

    def __init__(self, node: Any = None) -> NoReturn:
        raise NotImplementedError(_TEXT.format("symbolic"))


class SymFloat:
    """Float that is not known yet: there are no objects of this class.

    >>> import tracejit
    >>> isinstance(2.0, (float, tracejit.SymFloat)), isinstance(2.0, tracejit.SymFloat)
    (True, False)
    """

    def __init__(self, node: Any = None) -> NoReturn:
        raise NotImplementedError(_TEXT.format("symbolic"))


class SymBool:
    """Bool that is not known yet: there are no objects of this class.

    >>> import tracejit
    >>> isinstance(True, (bool, tracejit.SymBool)), isinstance(True, tracejit.SymBool)
    (True, False)
    """

    def __init__(self, node: Any = None) -> NoReturn:
        raise NotImplementedError(_TEXT.format("symbolic"))
