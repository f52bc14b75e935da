"""Batch norms without running statistics: `vmap` cannot write those that all samples share.

In: a module. Out: the same one.
"""

from __future__ import annotations

from typing import Any


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Make all batch norms of a module, itself included, use the batch's statistics and keep none.
    Return the module.

    >>> import tracejit
    >>> layer = tracejit.nn.Sequential(tracejit.nn.BatchNorm1d(2))
    >>> tracejit.func.replace_all_batch_norm_modules_(layer)[0].running_mean is None
    True
    """
    from tracejit.nn.batch_norm import BatchNorm1d, BatchNorm2d, BatchNorm3d

    for module in root.modules():
        if isinstance(module, (BatchNorm1d, BatchNorm2d, BatchNorm3d)):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
