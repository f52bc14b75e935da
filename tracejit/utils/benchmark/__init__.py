"""Timing of statements; PyTorch's `torch.utils.benchmark`.

In: statements as texts. Out: measurements, and tables that compare them.
"""

# ruff: noqa: F401
from tracejit.core.ops import sealing as _sealing
from tracejit.utils.benchmark.compare import Colorize, Compare
from tracejit.utils.benchmark.measurement import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)
from tracejit.utils.benchmark.timer import Language, Timer, timer

_sealing.seal_all(globals())
