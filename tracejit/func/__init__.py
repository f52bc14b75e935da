"""Functions of functions: derivatives, maps over a dimension, modules as functions; PyTorch's
`torch.func`.

In: functions of tensors, and modules. Out: functions. `derivatives.py` has gradients,
`jacobians.py` what is made of them, `vmap.py` the map, whose tensors and rules are in `mapping.py`
and `mapping_rules.py`.
"""

from tracejit.core.ops import sealing as _sealing
from tracejit.func.batch_norm import replace_all_batch_norm_modules_
from tracejit.func.derivatives import grad, grad_and_value, jvp, linearize, vjp
from tracejit.func.functional_call import functional_call, stack_module_state
from tracejit.func.jacobians import hessian, jacfwd, jacrev
from tracejit.func.vmap import vmap

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip

_sealing.seal_all(globals(), nested=True)
