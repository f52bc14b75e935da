"""Target of native kernels: this machine's processor, or a baseline that many machines share.

In: `flags.target`. Out: LLVM's name of the processor, and its features. Called by `native`,
`library_tile`, the kernel cache and the doctor.

A baseline is a level of the x86-64 psABI. Its kernels run on every processor that has the level's
features, so one kernel cache serves them all. A processor that lacks one gets a `TargetError`.
"""

from __future__ import annotations

import functools
import platform

from tracejit.config import flags

_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
BASELINES = {"x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}
NATIVE = "native"


class TargetError(RuntimeError):
    """Error: this processor lacks features of the target in `TRACEJIT_TARGET`."""


@functools.cache
def host_cpu() -> tuple[str, str]:
    """Return the name and features of this machine's processor, as LLVM has them.

    Intel's first processors with AVX-512 ran slower while they used all its bits, so LLVM takes
    half of them on all. Those since Ice Lake (with VBMI2) do not: a fifth faster in exp and erf.
    """
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    if "+avx512vbmi2" in features:
        features += ",-prefer-256-bit"
    return llvm.get_host_cpu_name(), features


def processor(target: str = "") -> tuple[str, str]:
    """Return the name and features of the processor that kernels are compiled for.

    Raises TargetError where this processor lacks features of it.

    >>> processor("native") == host_cpu()
    True
    """
    target = target or flags.target
    if target == NATIVE:
        return host_cpu()
    lacking = missing_features(target)
    if lacking:
        raise TargetError(f"TRACEJIT_TARGET={target}: this processor ({host_cpu()[0]}) lacks "
                          f"{', '.join(lacking)}; take an older baseline, or native")
    return target, ",".join(f"+{feature}" for feature in BASELINES[target])


def missing_features(target: str) -> list[str]:
    """Return the features of a target that this processor does not have."""
    if target == NATIVE:
        return []
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return [f"x86-64 (it is {platform.machine()})"]
    have = set(host_cpu()[1].split(","))
    return [feature for feature in BASELINES[target] if f"+{feature}" not in have]
