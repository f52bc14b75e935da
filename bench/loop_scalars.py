"""Two operations repeated, differences of a volume, a chain of links, Newton, Mandelbrot."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.loop_program import Arrays, Program, Sizes


# -- `while i < n` ----------------------------------------------------------------------------
def _while_arrays(sizes: Sizes) -> Arrays:
    return [np.array(sizes["n"], "i4"), np.array(1.0, "f4")]


def _while(space: Any, sizes: Sizes) -> Any:
    def run(n: Any, x: Any) -> Any:
        i = space.zeros((), dtype=space.int32)
        while i < n:
            x = x * 0.999 + 0.5
            i = i + 1
        return x

    return run


def _jax_while(jax: Any, sizes: Sizes) -> Any:
    def run(n: Any, x: Any) -> Any:
        def step(state: Any) -> Any:
            i, x = state
            return i + 1, x * 0.999 + 0.5

        start = jax.numpy.zeros((), "int32"), x
        return jax.lax.while_loop(lambda state: state[0] < n, step, start)[1]

    return run


# -- squared differences of a volume ----------------------------------------------------------
def _volume_arrays(sizes: Sizes) -> Arrays:
    width = sizes["width"]
    return [np.random.default_rng(1).standard_normal((width,) * 3).astype("f4")]


def _volume(_: Any, sizes: Sizes) -> Any:
    def loss(x: Any) -> Any:
        return (((x[1:] - x[:-1]) ** 2).mean() + ((x[:, 1:] - x[:, :-1]) ** 2).mean()
                + ((x[:, :, 1:] - x[:, :, :-1]) ** 2).mean())

    return loss


def _volume_floor(floors: dict[str, Any], sizes: Sizes) -> float:
    """Read the volume and write its gradient once."""
    return 8 * sizes["width"] ** 3 / floors["copy, bytes/s"]


# -- a chain of links -------------------------------------------------------------------------
def _chain_arrays(sizes: Sizes) -> Arrays:
    rng = np.random.default_rng(1)
    return [0.3 * rng.standard_normal((8, sizes["links"])), rng.random(sizes["links"])]


def _chain(space: Any, sizes: Sizes) -> Any:
    def tip(angles: Any, lengths: Any) -> Any:
        angle = x = y = space.zeros((), dtype=space.float64)
        for k in range(lengths.shape[0]):
            angle = angle + angles[k]
            x = x + lengths[k] * space.cos(angle)
            y = y + lengths[k] * space.sin(angle)
        return space.stack([x, y])

    def slopes(angles: Any, lengths: Any) -> Any:
        return space.func.vmap(space.func.jacrev(tip), in_dims=(0, None))(angles, lengths)

    return slopes


def _jax_chain(jax: Any, sizes: Sizes) -> Any:
    def tip(angles: Any, lengths: Any) -> Any:
        def step(state: Any, link: Any) -> Any:
            angle, x, y = state
            angle = angle + link[0]
            x = x + link[1] * jax.numpy.cos(angle)
            return (angle, x, y + link[1] * jax.numpy.sin(angle)), None

        (_, x, y), _ = jax.lax.scan(step, (0.0, 0.0, 0.0), (angles, lengths))
        return jax.numpy.stack([x, y])

    return jax.vmap(jax.jacrev(tip), in_axes=(0, None))


# -- Kepler's equation by Newton --------------------------------------------------------------
def _newton_arrays(sizes: Sizes) -> Arrays:
    return [np.linspace(0.0, 3.0, sizes["points"])]


def _newton(space: Any, sizes: Sizes) -> Any:
    def solve(mean: Any) -> Any:
        e = mean
        step = space.ones_like(mean)
        while step.abs().max() > 1e-9:
            step = (e - 0.8 * space.sin(e) - mean) / (1.0 - 0.8 * space.cos(e))
            e = e - step
        return e

    return solve


def _jax_newton(jax: Any, sizes: Sizes) -> Any:
    np_ = jax.numpy

    def solve(mean: Any) -> Any:
        def improve(state: Any) -> Any:
            e, _ = state
            step = (e - 0.8 * np_.sin(e) - mean) / (1.0 - 0.8 * np_.cos(e))
            return e - step, step

        goes_on = lambda state: abs(state[1]).max() > 1e-9  # noqa: E731
        return jax.lax.while_loop(goes_on, improve, (mean, np_.ones_like(mean)))[0]

    return solve


# -- Mandelbrot's set -------------------------------------------------------------------------
def _plane(sizes: Sizes) -> Arrays:
    x, y = np.linspace(-2.0, 0.6, sizes["width"]), np.linspace(-1.2, 1.2, sizes["width"])
    return [np.tile(x, (len(y), 1)), np.tile(y[:, None], (1, len(x))), np.zeros(sizes["steps"])]


def _mandelbrot(space: Any, sizes: Sizes) -> Any:
    def escapes(a: Any, b: Any, times: Any) -> Any:
        x, y = space.zeros_like(a), space.zeros_like(b)
        count = space.zeros_like(a)
        for _ in times:
            inside = x * x + y * y < 4.0
            count = count + inside
            x, y = (space.where(inside, x * x - y * y + a, x),
                    space.where(inside, 2.0 * x * y + b, y))
        return count

    return escapes


def _jax_mandelbrot(jax: Any, sizes: Sizes) -> Any:
    where = jax.numpy.where

    def escapes(a: Any, b: Any, times: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            x, y, count = state
            inside = x * x + y * y < 4.0
            x, y = where(inside, x * x - y * y + a, x), where(inside, 2.0 * x * y + b, y)
            return (x, y, count + inside), None

        zeros = jax.numpy.zeros_like(a)
        return jax.lax.scan(step, (zeros, zeros, zeros), times)[0][2]

    return escapes


PROGRAMS = [
    Program("while i < n of two operations", {"n": 1 << 20}, {"n": 20}, _while_arrays, _while,
            _jax_while, length="n", torch=False),
    Program("squared differences of a volume", {"width": 160}, {"width": 5}, _volume_arrays,
            _volume, _volume, leaves=1, floor=_volume_floor),
    Program("vmap of jacrev, a chain, float64", {"links": 35}, {"links": 18}, _chain_arrays,
            _chain, _jax_chain, length="links"),
    Program("Newton, Kepler's equation, float64", {"points": 10_000}, {"points": 7},
            _newton_arrays, _newton, _jax_newton),
    Program("Mandelbrot, float64", {"width": 256, "steps": 50}, {"width": 9, "steps": 18},
            _plane, _mandelbrot, _jax_mandelbrot, length="steps", unequal=1e-3),
]
