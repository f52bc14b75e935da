"""Simulators: a nerve cell, Lorenz's equations, planets, bodies, an ODE with weights, heat."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.loop_program import Arrays, Program, Sizes


def _random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# -- Hodgkin and Huxley's cell ----------------------------------------------------------------
def _cell_step(exp: Any, state: Any, current: Any, sodium: Any, potassium: Any, leak: Any) -> Any:
    v, m, h, n = state
    am = 0.1 * (v + 40.0) / (1.0 - exp(-0.1 * (v + 40.0)))
    bm = 4.0 * exp(-(v + 65.0) / 18.0)
    ah = 0.07 * exp(-(v + 65.0) / 20.0)
    bh = 1.0 / (1.0 + exp(-0.1 * (v + 35.0)))
    an = 0.01 * (v + 55.0) / (1.0 - exp(-0.1 * (v + 55.0)))
    bn = 0.125 * exp(-(v + 65.0) / 80.0)
    flow = (sodium * m * m * m * h * (v - 50.0) + potassium * n * n * n * n * (v + 77.0)
            + leak * (v + 54.4))
    return (v + 0.01 * (current - flow), m + 0.01 * (am * (1.0 - m) - bm * m),
            h + 0.01 * (ah * (1.0 - h) - bh * h), n + 0.01 * (an * (1.0 - n) - bn * n))


def _cell_arrays(sizes: Sizes) -> Arrays:
    wave = 10.0 + np.sin(np.arange(sizes["steps"]) * 0.01)
    start = np.array([-65.0, 0.05, 0.6, 0.32])
    return [np.array([120.0, 36.0, 0.3], "f4"), start.astype("f4"), wave.astype("f4")]


def _cell(space: Any, sizes: Sizes) -> Any:
    def loss(conductances: Any, start: Any, currents: Any) -> Any:
        sodium, potassium, leak = conductances[0], conductances[1], conductances[2]
        v, m, h, n = start[0], start[1], start[2], start[3]
        voltages = []
        for current in currents:
            v, m, h, n = _cell_step(space.exp, (v, m, h, n), current, sodium, potassium, leak)
            voltages.append(v)
        return (space.stack(voltages) ** 2).mean() * 1e-3

    return loss


def _jax_cell(jax: Any, sizes: Sizes) -> Any:
    def loss(conductances: Any, start: Any, currents: Any) -> Any:
        def step(state: Any, current: Any) -> Any:
            state = _cell_step(jax.numpy.exp, state, current, *conductances)
            return state, state[0]

        _, voltages = jax.lax.scan(step, tuple(start), currents)
        return (voltages ** 2).mean() * 1e-3

    return loss


# -- Runge and Kutta's step, for any equation -------------------------------------------------
def _rk4(slope: Any, y: Any, dt: float, *given: Any) -> Any:
    a = slope(y, *given)
    b = slope(y + 0.5 * dt * a, *given)
    c = slope(y + 0.5 * dt * b, *given)
    d = slope(y + dt * c, *given)
    return y + dt / 6.0 * (a + 2.0 * b + 2.0 * c + d)


def _lorenz_slope(s: Any, p: Any, stack: Any) -> Any:
    x, y, z = s[0], s[1], s[2]
    return stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])


def _lorenz(space: Any, sizes: Sizes) -> Any:
    def loss(parameters: Any, state: Any, times: Any) -> Any:
        for _ in times:
            state = _rk4(_lorenz_slope, state, 1e-3, parameters, space.stack)
        return (state * state).sum()

    return loss


def _jax_lorenz(jax: Any, sizes: Sizes) -> Any:
    def loss(parameters: Any, state: Any, times: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            return _rk4(_lorenz_slope, state, 1e-3, parameters, jax.numpy.stack), None

        state, _ = jax.lax.scan(step, state, times)
        return (state * state).sum()

    return loss


def _lorenz_arrays(sizes: Sizes) -> Arrays:
    return [np.array([10.0, 28.0, 8.0 / 3.0], "f4"), np.ones(3, "f4"),
            np.zeros(sizes["steps"], "f4")]


def _ode(space: Any, sizes: Sizes) -> Any:
    def loss(w: Any, u: Any, y: Any, times: Any) -> Any:
        def slope(y: Any) -> Any:
            return space.tanh(y @ w) @ u

        for _ in times:
            y = _rk4(slope, y, 0.05)
        return (y * y).mean()

    return loss


def _jax_ode(jax: Any, sizes: Sizes) -> Any:
    def loss(w: Any, u: Any, y: Any, times: Any) -> Any:
        def step(y: Any, _: Any) -> Any:
            return _rk4(lambda y: jax.numpy.tanh(y @ w) @ u, y, 0.05), None

        y, _ = jax.lax.scan(step, y, times)
        return (y * y).mean()

    return loss


def _ode_arrays(sizes: Sizes) -> Arrays:
    width = sizes["width"]
    return [_random(1, 8, width) * 0.3, _random(2, width, 8) * 0.1, _random(3, 16, 8),
            np.zeros(sizes["steps"], "f4")]


# -- bodies that attract each other -----------------------------------------------------------
def _pull(x: Any, masses: Any) -> Any:
    apart = x[None, :, :] - x[:, None, :]
    squared = (apart * apart).sum(-1) + 0.01
    return (apart * (masses / (squared * squared ** 0.5))[:, :, None]).sum(1)


def _bodies(space: Any, sizes: Sizes) -> Any:
    def loss(x: Any, v: Any, masses: Any, times: Any) -> Any:
        for _ in times:
            v = v + 0.5e-3 * _pull(x, masses)
            x = x + 1e-3 * v
            v = v + 0.5e-3 * _pull(x, masses)
        return (x * x).sum() + (v * v).sum()

    return loss


def _jax_bodies(jax: Any, sizes: Sizes) -> Any:
    def loss(x: Any, v: Any, masses: Any, times: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            x, v = state
            v = v + 0.5e-3 * _pull(x, masses)
            x = x + 1e-3 * v
            return (x, v + 0.5e-3 * _pull(x, masses)), None

        (x, v), _ = jax.lax.scan(step, (x, v), times)
        return (x * x).sum() + (v * v).sum()

    return loss


def _bodies_arrays(sizes: Sizes) -> Arrays:
    count = sizes["bodies"]
    masses = np.abs(_random(3, count)) + 0.1
    return [_random(1, count, 3), 0.1 * _random(2, count, 3), masses.astype("f4"),
            np.zeros(sizes["steps"], "f4")]


# -- heat in a plate --------------------------------------------------------------------------
def _heat(space: Any, sizes: Sizes) -> Any:
    def spread(u: Any, times: Any) -> Any:
        u = u.clone()
        for _ in times:
            u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
                                    - 4.0 * u[1:-1, 1:-1])
        return u

    return spread


def _jax_heat(jax: Any, sizes: Sizes) -> Any:
    def spread(u: Any, times: Any) -> Any:
        def step(u: Any, _: Any) -> Any:
            flow = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1]
            return u.at[1:-1, 1:-1].add(0.1 * flow), None

        return jax.lax.scan(step, u, times)[0]

    return spread


def _heat_arrays(sizes: Sizes) -> Arrays:
    return [_random(1, sizes["width"], sizes["width"]), np.zeros(sizes["steps"], "f4")]


def _heat_floor(floors: dict[str, Any], sizes: Sizes) -> float:
    """Read and write the plate once a step, in the cache."""
    return sizes["steps"] * 8 * sizes["width"] ** 2 / floors["copy in cache, bytes/s"]


PROGRAMS = [
    Program("Hodgkin-Huxley cell", {"steps": 4000}, {"steps": 20}, _cell_arrays, _cell, _jax_cell,
            leaves=1, length="steps", tolerance=1e-2),
    Program("Lorenz, RK4", {"steps": 5000}, {"steps": 20}, _lorenz_arrays, _lorenz, _jax_lorenz,
            leaves=2, length="steps", tolerance=1e-2),
    Program("four planets, leapfrog", {"steps": 1000, "bodies": 4}, {"steps": 20, "bodies": 4},
            _bodies_arrays, _bodies, _jax_bodies, leaves=2, length="steps", tolerance=1e-3),
    Program("64 bodies, leapfrog", {"steps": 100, "bodies": 64}, {"steps": 18, "bodies": 5},
            _bodies_arrays, _bodies, _jax_bodies, leaves=2, length="steps", tolerance=1e-3),
    Program("RK4, slopes by an MLP", {"steps": 200, "width": 32}, {"steps": 18, "width": 4},
            _ode_arrays, _ode, _jax_ode, leaves=2, length="steps"),
    Program("2-D heat by slices", {"steps": 200, "width": 256}, {"steps": 18, "width": 8},
            _heat_arrays, _heat, _jax_heat, length="steps", floor=_heat_floor),
]
