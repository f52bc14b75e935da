"""`GradScaler`: scales losses up, so that small gradients do not become zero in float16.

In: a loss, an optimizer. Out: a scaled loss; gradients scaled back; a step of the optimizer if all
gradients are finite. The scale grows while they are, and shrinks where they are not. Called by
users in training steps, also captured ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import tracejit
from tracejit.amp.finite_step import step_where
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.autocast import device_kind
from tracejit.core.ops.types import float16, float32, float64, int32

_UNSCALED, _STEPPED = "unscaled", "stepped"


class GradScaler:
    """Scales losses, and gradients back.

    >>> import tracejit
    >>> w = tracejit.ones(1, requires_grad=True)
    >>> optimizer, scaler = tracejit.optim.SGD([w], lr=0.5), GradScaler("cpu")
    >>> scaler.scale((w * w).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w.detach(), scaler.get_scale()
    (tensor([0.]), 65536.0)

    AssertionError for factors that do not grow and shrink, and where `scale` was not called;
    RuntimeError for steps in the wrong order.
    """

    def __init__(self, device: str = "cuda", init_scale: float = 2.0**16,
                 growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True) -> None:
        self._device = device_kind(device)
        self._enabled = enabled
        if enabled and self._device == "cuda" and not tracejit.cuda.is_available():
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  "
                          "Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: Any = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Any = None
        self._stages: dict[int, str] = {}  # by the id of an optimizer, until `update`
        self._found: dict[int, Any] = {}  # likewise: whether a gradient was not finite

    # -- scaling ----------------------------------------------------------------------------------
    def scale(self, outputs: Any) -> Any:
        """Return a loss, or losses in lists and tuples, times the scale.

        Raise ValueError for other objects.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._start(outputs.device)
            return outputs * self._scale.to(outputs.device)
        if isinstance(outputs, Iterable):
            made = [self.scale(output) for output in outputs]
            return type(outputs)(made) if isinstance(outputs, (list, tuple)) else made
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _start(self, device: Any) -> None:
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = tracejit.full((), self._init_scale, dtype=float32, device=device)
        self._growth_tracker = tracejit.full((), self._init_growth_tracker, dtype=int32,
                                             device=device)

    def _check_started(self, function: str) -> None:
        fix = ("This may indicate your script did not use scaler.scale(loss or outputs) earlier in "
               "the iteration.")
        for name, value in (("_scale", self._scale), ("_growth_tracker", self._growth_tracker)):
            if value is None:
                raise AssertionError(f"Attempted {function} but {name} is None.  {fix}")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, before `step` does: to
        clip them, say. Raise RuntimeError the second time, and after `step`; ValueError for float16
        gradients."""
        if not self._enabled:
            return
        self._check_started("unscale_")
        stage = self._stages.get(id(optimizer))
        if stage is _UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the "
                               "last update().")
        if stage is _STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        # in float64, as PyTorch: one rounding, to float32
        inverse = self._scale.to(float64).reciprocal().to(float32)
        self._found[id(optimizer)] = self._unscaled(optimizer, inverse)
        self._stages[id(optimizer)] = _UNSCALED

    def _unscaled(self, optimizer: Any, inverse: Any) -> Any:
        found = None
        with no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    grad = parameter.grad
                    if grad is None:
                        continue
                    if grad.dtype is float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    # rows that are not stored are 0, which no scale changes
                    if grad.is_sparse:
                        grad = grad._values()
                    infinite = grad.isfinite().all().logical_not().to(self._scale.device)
                    found = infinite if found is None else found | infinite
                    grad.mul_(inverse.to(grad.device))
        return found

    # -- stepping ---------------------------------------------------------------------------------
    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Call `optimizer.step(*args, **kwargs)` if all gradients are finite, unscaled first if
        they are not yet. Return its result, or None. Raise RuntimeError the second time."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_started("step")
        stage = self._stages.get(id(optimizer))
        if stage is _STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if stage is None:
            self.unscale_(optimizer)
        found = self._found[id(optimizer)]
        if found is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        tracer = active.tracer
        # captured, the step is a branch of the graph that the gradients' values decide
        where = step_where if tracer is None else tracer.convert_call(step_where)
        result = where(found.logical_not(), optimizer.step, args, kwargs)
        self._stages[id(optimizer)] = _STEPPED
        return result

    def update(self, new_scale: Any = None) -> None:
        """Shrink the scale if a step was left out. Let it grow after `growth_interval` steps that
        were not. With `new_scale`, set it."""
        if not self._enabled:
            return
        self._check_started("update")
        if new_scale is not None:
            self._set(new_scale)
        else:
            given = [found for found in self._found.values() if found is not None]
            if not given:
                raise AssertionError("No inf checks were recorded prior to update.")
            infinite = given[0]
            for found in given[1:]:
                infinite = infinite | found
            self._adapt(infinite)
        self._stages.clear()
        self._found.clear()

    def _set(self, new_scale: Any) -> None:
        if isinstance(new_scale, float):
            self._scale.fill_(new_scale)
            return
        reason = ("new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                  "torch.FloatTensor with requires_grad=False.")
        fits = isinstance(new_scale, Tensor) and new_scale.dtype is float32
        if not fits or new_scale.numel() != 1 or new_scale.requires_grad:
            raise AssertionError(reason)
        self._scale.copy_(new_scale.reshape(()))

    def _adapt(self, infinite: Any) -> None:
        scale, steps = self._scale, self._growth_tracker + 1
        due = steps == self._growth_interval
        larger = scale * self._growth_factor
        # a scale of inf would make every gradient infinite from then on
        larger = tracejit.where(larger.isfinite(), larger, scale)
        grown = tracejit.where(due, larger, scale)
        smaller = scale * self._backoff_factor
        with no_grad():
            self._scale.copy_(tracejit.where(infinite, smaller, grown))
            self._growth_tracker.copy_(steps.masked_fill(infinite | due, 0))

    # -- what it is set to ------------------------------------------------------------------------
    def get_scale(self) -> float:
        """Return the scale, 1 where scaling is off."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        """Return the factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor by which the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return the number of finite steps after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of finite steps after which the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Return True if losses are scaled."""
        return self._enabled

    # -- saving -----------------------------------------------------------------------------------
    def _steps(self) -> int:
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else int(tracker.item())

    def state_dict(self) -> dict[str, Any]:
        """Return the scale, the factors, the interval, and the steps since the scale last changed.
        Return an empty dict where scaling is off."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor,
                "backoff_factor": self._backoff_factor, "growth_interval": self._growth_interval,
                "_growth_tracker": self._steps()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state. RuntimeError if it is empty."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from "
                               "a disabled instance of GradScaler.")
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._stages:
                raise AssertionError("A GradScaler instance may only be pickled at the beginning "
                                     "of an iteration, or at the end after scaler.update().")
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._steps()
            state["_scale"] = state["_growth_tracker"] = None
        return state
