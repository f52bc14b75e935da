"""Filters and sequences: Kalman, a hidden Markov model, rotations, sixty scalars, an LSTM cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.loop_program import Arrays, Program, Sizes


def _random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


# -- Kalman's filter: position and velocity in a plane ----------------------------------------
def _kalman_arrays(sizes: Sizes) -> Arrays:
    step = np.eye(4) + 0.1 * np.eye(4, k=2)
    walk = np.cumsum(0.1 * _random(1, sizes["steps"], 2), 0) + 0.3 * _random(2, sizes["steps"], 2)
    return [np.array([-2.0, -1.0]), walk, step, np.eye(2, 4)]


def _kalman(space: Any, sizes: Sizes) -> Any:
    def loss(noises: Any, seen: Any, step: Any, look: Any) -> Any:
        drift = space.exp(noises[0]) * space.eye(4, dtype=space.float64)
        noise = space.exp(noises[1]) * space.eye(2, dtype=space.float64)
        m = space.zeros(4, dtype=space.float64)
        p = space.eye(4, dtype=space.float64)
        ll = 0.0
        for y in seen:
            m, p = step @ m, step @ p @ step.T + drift
            v, s = y - look @ m, look @ p @ look.T + noise
            gain = space.linalg.solve(s, look @ p).T
            ll = ll - 0.5 * (v @ space.linalg.solve(s, v) + space.linalg.slogdet(s)[1])
            m, p = m + gain @ v, p - gain @ look @ p
        return ll

    return loss


def _jax_kalman(jax: Any, sizes: Sizes) -> Any:
    np_, linalg = jax.numpy, jax.numpy.linalg

    def loss(noises: Any, seen: Any, step: Any, look: Any) -> Any:
        drift, noise = np_.exp(noises[0]) * np_.eye(4), np_.exp(noises[1]) * np_.eye(2)

        def one(state: Any, y: Any) -> Any:
            m, p, ll = state
            m, p = step @ m, step @ p @ step.T + drift
            v, s = y - look @ m, look @ p @ look.T + noise
            gain = linalg.solve(s, look @ p).T
            ll = ll - 0.5 * (v @ linalg.solve(s, v) + linalg.slogdet(s)[1])
            return (m + gain @ v, p - gain @ look @ p, ll), None

        return jax.lax.scan(one, (np_.zeros(4), np_.eye(4), 0.0), seen)[0][2]

    return loss


# -- a hidden Markov model, forward in logarithms ---------------------------------------------
def _hmm_arrays(sizes: Sizes) -> Arrays:
    states = sizes["states"]
    moves = _random(1, states, states)
    return [moves.astype("f4"), _random(2, sizes["steps"], states).astype("f4")]


def _hmm(space: Any, sizes: Sizes) -> Any:
    def loss(moves: Any, seen: Any) -> Any:
        moves = space.log_softmax(moves, -1)
        alpha = seen[0]
        for emitted in seen[1:]:
            alpha = space.logsumexp(alpha[:, None] + moves, 0) + emitted
        return space.logsumexp(alpha, 0)

    return loss


def _jax_hmm(jax: Any, sizes: Sizes) -> Any:
    logsumexp = jax.nn.logsumexp

    def loss(moves: Any, seen: Any) -> Any:
        moves = jax.nn.log_softmax(moves, -1)

        def step(alpha: Any, emitted: Any) -> Any:
            return logsumexp(alpha[:, None] + moves, axis=0) + emitted, None

        return logsumexp(jax.lax.scan(step, seen[0], seen[1:])[0], axis=0)

    return loss


# -- rotations whose one element is kept ------------------------------------------------------
_TURN = [[0.0, 0.6, 0.8], [0.0, -0.8, 0.6], [1.0, 0.0, 0.0]]


def _rotation_arrays(sizes: Sizes) -> Arrays:
    return [0.1 * _random(1, sizes["steps"]), np.array(_TURN)]


def _rotations(space: Any, sizes: Sizes) -> Any:
    def loss(angles: Any, turn: Any) -> Any:
        M = space.eye(3, dtype=space.float64)
        zero, one = space.zeros((), dtype=space.float64), space.ones((), dtype=space.float64)
        out = []
        for angle in angles:
            c, s = space.cos(angle), space.sin(angle)
            R = space.stack([c, -s, zero, s, c, zero, zero, zero, one]).view(3, 3)
            M = R @ turn @ M
            out.append(M[0, 1])
        return (space.stack(out) ** 2).mean()

    return loss


def _jax_rotations(jax: Any, sizes: Sizes) -> Any:
    def loss(angles: Any, turn: Any) -> Any:
        def step(M: Any, angle: Any) -> Any:
            c, s = jax.numpy.cos(angle), jax.numpy.sin(angle)
            M = jax.numpy.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]) @ turn @ M
            return M, M[0, 1]

        _, out = jax.lax.scan(step, jax.numpy.eye(3), angles)
        return (out ** 2).mean()

    return loss


# -- sixty stores that empty into each other --------------------------------------------------
def _store_arrays(sizes: Sizes) -> Arrays:
    rates = 0.3 + 0.1 * np.random.default_rng(1).random(sizes["stores"])
    return [rates.astype("f4"), np.abs(_random(2, sizes["rows"], 3)).astype("f4")]


def _stores(space: Any, sizes: Sizes) -> Any:
    count = sizes["stores"]

    def loss(rates: Any, rows: Any) -> Any:
        s = [0.0 * rates[k] for k in range(count)]
        total = space.zeros(())
        for row in rows:
            s = [s[k] * (1.0 - rates[k]) + rates[k - 1] * s[k - 1] * 0.5 + row[k % 3]
                 for k in range(count)]
            total = total + s[-1]
        return total / rows.shape[0]

    return loss


def _jax_stores(jax: Any, sizes: Sizes) -> Any:
    count = sizes["stores"]

    def loss(rates: Any, rows: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            s, total = state
            s = [s[k] * (1.0 - rates[k]) + rates[k - 1] * s[k - 1] * 0.5 + row[k % 3]
                 for k in range(count)]
            return (s, total + s[-1]), None

        start = [0.0 * rates[k] for k in range(count)], jax.numpy.zeros(())
        return jax.lax.scan(step, start, rows)[0][1] / rows.shape[0]

    return loss


# -- an LSTM cell, and one step of gradient descent -------------------------------------------
def _lstm_arrays(sizes: Sizes) -> Arrays:
    steps, width = sizes["steps"], sizes["width"]
    shapes = (4 * width, width), (4 * width, width), (4 * width,), (steps, 32, width)
    return [(0.1 * _random(k, *shape)).astype("f4") for k, shape in enumerate(shapes)]


def _lstm(space: Any, sizes: Sizes) -> Any:
    def loss(w: Any, u: Any, b: Any, rows: Any) -> Any:
        h = space.zeros(rows.shape[1], u.shape[1])
        c = space.zeros(rows.shape[1], u.shape[1])
        for x in rows:
            i, f, g, o = (x @ w.T + h @ u.T + b).chunk(4, 1)
            c = space.sigmoid(f) * c + space.sigmoid(i) * space.tanh(g)
            h = space.sigmoid(o) * space.tanh(c)
        return (h * h).mean()

    return loss


def _jax_lstm(jax: Any, sizes: Sizes) -> Any:
    sigmoid, tanh = jax.nn.sigmoid, jax.numpy.tanh

    def loss(w: Any, u: Any, b: Any, rows: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            h, c = state
            i, f, g, o = jax.numpy.split(x @ w.T + h @ u.T + b, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * tanh(g)
            return (sigmoid(o) * tanh(c), c), None

        zeros = jax.numpy.zeros((rows.shape[1], u.shape[1]))
        (h, _), _ = jax.lax.scan(step, (zeros, zeros), rows)
        return (h * h).mean()

    return loss


def _lstm_floor(floors: dict[str, Any], sizes: Sizes) -> float:
    """Three products of each kind, at the speed of the product of all steps at once."""
    work = sizes["steps"] * 2 * 32 * sizes["width"] * 4 * sizes["width"]
    return 3 * 2 * work / floors["product f32, flop/s"]["1024x128x512"]


PROGRAMS = [
    Program("3x3 rotations, float64", {"steps": 3000}, {"steps": 18}, _rotation_arrays,
            _rotations, _jax_rotations, leaves=1, length="steps"),
    Program("Kalman likelihood, float64", {"steps": 300}, {"steps": 5}, _kalman_arrays,
            _kalman, _jax_kalman, leaves=1, length="steps"),
    Program("60 scalars in a list", {"rows": 614, "stores": 60}, {"rows": 18, "stores": 4},
            _store_arrays, _stores, _jax_stores, leaves=1, length="rows", body="stores"),
    Program("HMM forward", {"steps": 300, "states": 16}, {"steps": 18, "states": 4},
            _hmm_arrays, _hmm, _jax_hmm, leaves=1, length="steps"),
    Program("LSTM cell, training step", {"steps": 32, "width": 128}, {"steps": 18, "width": 4},
            _lstm_arrays, _lstm, _jax_lstm, leaves=3, length="steps", floor=_lstm_floor),
]
