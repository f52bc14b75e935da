"""Whole networks: convolutions, recurrence and attention, in training and in evaluation.

The same weights for everyone, by name, so that the first losses can be compared. Training steps
are forward, backward and plain gradient descent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.measure import Call, Starter, Workload
from bench.peers import Peers

LR = 1e-2
Shapes = dict[str, tuple[int, ...]]


def weights(shapes: Shapes) -> dict[str, np.ndarray]:
    """Matrices and kernels scaled by their inputs; vectors near 1 if they scale, else near 0."""
    rng = np.random.default_rng(4)
    found = {}
    for name, shape in shapes.items():
        made = rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        scales = name.endswith("weight") and len(shape) == 1
        found[name] = (1 + 0.1 * made if scales else made if len(shape) > 1 else 0.01 * made)
    return {name: array.astype("f4") for name, array in found.items()}


def _filled(space: Any, model: Any) -> Any:
    named = dict(model.named_parameters())
    arrays = weights({name: tuple(p.shape) for name, p in named.items()})
    with space.no_grad():
        for name, parameter in named.items():
            parameter.copy_(space.from_numpy(arrays[name]))
    return model


def _images(count: int, channels: int, size: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal((count, channels, size, size)).astype("f4")


def _classes(classes: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(6).integers(0, classes, shape)


# -- under PyTorch's names -------------------------------------------------------------------------
def training(space: Any, wrap: Any, model: Any, arrays: list[np.ndarray]) -> Starter:
    """`model(space)` gives the loss of a batch."""

    def start() -> Call:
        network = _filled(space, model(space))
        optimizer = space.optim.SGD(network.parameters(), lr=LR)
        batch = [space.from_numpy(array) for array in arrays]

        @wrap
        def step(*batch: Any) -> Any:
            optimizer.zero_grad()
            loss = network(*batch)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return lambda: step(*batch)

    return start


def gradients(space: Any, wrap: Any, model: Any, arrays: list[np.ndarray]) -> Starter:
    """Gradients of what `model(space)` gives, by its first input and its parameters."""

    def start() -> Call:
        network = _filled(space, model(space))
        batch = [space.from_numpy(array) for array in arrays]
        batch[0].requires_grad_()
        wanted = [batch[0], *network.parameters()]

        @wrap
        def step(*batch: Any) -> Any:
            return space.autograd.grad(network(*batch), [batch[0], *wanted[1:]])

        return lambda: step(*batch)[0]

    return start


def evaluation(space: Any, wrap: Any, model: Any, arrays: list[np.ndarray]) -> Starter:
    """What `model(space)` gives in evaluation, without gradients."""

    def start() -> Call:
        network = _filled(space, model(space)).eval()
        batch = [space.from_numpy(array) for array in arrays]
        step = wrap(lambda *batch: network(*batch))

        def call() -> Any:
            with space.no_grad():
                return step(*batch)

        return call

    return start


def lenet(space: Any) -> Any:
    """Two convolutions, two poolings, three linear layers, cross-entropy."""
    nn = space.nn

    class LeNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
            self.fc1, self.fc2 = nn.Linear(400, 120), nn.Linear(120, 84)
            self.fc3 = nn.Linear(84, 10)

        def forward(self, x: Any, target: Any) -> Any:
            F = nn.functional
            x = F.max_pool2d(F.relu(self.conv1(x)), 2)
            x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
            x = self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))
            return F.cross_entropy(x, target)

    return LeNet()


def residual(space: Any) -> Any:
    """Two convolutions with batch norms around which the input goes."""
    nn = space.nn

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(32, 32, 3, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(32)
            self.conv2 = nn.Conv2d(32, 32, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(32)

        def forward(self, x: Any) -> Any:
            y = nn.functional.relu(self.bn1(self.conv1(x)))
            y = nn.functional.relu(self.bn2(self.conv2(y)) + x)
            return (y * y).mean()

    return Residual()


def convolutions(space: Any) -> Any:
    """Four convolutions, the later ones on halved images of doubled channels."""
    nn = space.nn

    class Convolutions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.c1, self.c2 = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 64, 3, 2, 1)
            self.c3, self.c4 = nn.Conv2d(64, 64, 3, padding=1), nn.Conv2d(64, 128, 3, 2, 1)

        def forward(self, x: Any) -> Any:
            F = nn.functional
            x = F.relu(self.c2(F.relu(self.c1(x))))
            return F.avg_pool2d(F.relu(self.c4(F.relu(self.c3(x)))), 8).flatten(1)

    return Convolutions()


VOCABULARY, HIDDEN = 2000, 256


def language_model(space: Any) -> Any:
    """Embedding, LSTM, linear layer, cross-entropy."""
    nn = space.nn

    class LanguageModel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
            self.lstm = nn.LSTM(HIDDEN, HIDDEN)
            self.out = nn.Linear(HIDDEN, VOCABULARY)

        def forward(self, tokens: Any, target: Any) -> Any:
            x, _ = self.lstm(self.embedding(tokens))
            return nn.functional.cross_entropy(self.out(x).flatten(0, 1), target.flatten())

    return LanguageModel()


LAYERS, WIDTH, HEADS, TOKENS, LENGTH = 4, 128, 4, 65, 128


def gpt(space: Any) -> Any:
    """A transformer that reads leftward, and cross-entropy."""
    nn = space.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            F = nn.functional
            b, t, _ = x.shape
            heads = self.qkv(self.ln1(x)).view(b, t, 3, HEADS, WIDTH // HEADS)
            q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, WIDTH))
            return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token, self.place = nn.Embedding(TOKENS, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.ln, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS, bias=False)

        def forward(self, tokens: Any, target: Any) -> Any:
            x = self.token(tokens) + self.place(space.arange(tokens.shape[1]))
            for block in self.blocks:
                x = block(x)
            logits = self.out(self.ln(x))
            return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())

    return GPT()


# -- for jax ---------------------------------------------------------------------------------------
class _Jax:
    """The same networks as functions of a dict of weights."""

    def __init__(self, jax: Any):
        self.jax, self.np, self.lax = jax, jax.numpy, jax.lax

    def conv(self, p: Any, name: str, x: Any, stride: int, padding: int) -> Any:
        x = self.lax.conv_general_dilated(
            x, p[name + ".weight"], (stride, stride), [(padding, padding)] * 2
        )
        bias = p.get(name + ".bias")
        return x if bias is None else x + bias[:, None, None]

    def pool(self, x: Any) -> Any:
        return self.lax.reduce_window(
            x, -self.np.inf, self.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"
        )

    def linear(self, p: Any, name: str, x: Any) -> Any:
        y = x @ p[name + ".weight"].T
        bias = p.get(name + ".bias")
        return y if bias is None else y + bias

    def cross_entropy(self, logits: Any, target: Any) -> Any:
        logs = self.jax.nn.log_softmax(logits, axis=-1)
        return -self.np.take_along_axis(logs, target[:, None], axis=1).mean()

    def batch_norm(self, p: Any, name: str, x: Any) -> Any:
        centred = x - x.mean((0, 2, 3), keepdims=True)
        scale = self.lax.rsqrt((centred * centred).mean((0, 2, 3), keepdims=True) + 1e-5)
        weight, bias = (p[f"{name}.{part}"][:, None, None] for part in ("weight", "bias"))
        return centred * scale * weight + bias

    def layer_norm(self, p: Any, name: str, x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        scale = self.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
        return centred * scale * p[name + ".weight"] + p[name + ".bias"]

    def lenet(self, p: Any, x: Any, target: Any) -> Any:
        relu = self.jax.nn.relu
        x = self.pool(relu(self.conv(p, "conv1", x, 1, 2)))
        x = self.pool(relu(self.conv(p, "conv2", x, 1, 0))).reshape(x.shape[0], -1)
        x = relu(self.linear(p, "fc2", relu(self.linear(p, "fc1", x))))
        return self.cross_entropy(self.linear(p, "fc3", x), target)

    def residual(self, p: Any, x: Any) -> Any:
        relu = self.jax.nn.relu
        y = relu(self.batch_norm(p, "bn1", self.conv(p, "conv1", x, 1, 1)))
        y = relu(self.batch_norm(p, "bn2", self.conv(p, "conv2", y, 1, 1)) + x)
        return (y * y).mean()

    def convolutions(self, p: Any, x: Any) -> Any:
        relu = self.jax.nn.relu
        for name, stride in (("c1", 1), ("c2", 2), ("c3", 1), ("c4", 2)):
            x = relu(self.conv(p, name, x, stride, 1))
        return x.mean((2, 3))

    def language_model(self, p: Any, tokens: Any, target: Any) -> Any:
        gates = p["embedding.weight"][tokens] @ p["lstm.weight_ih_l0"].T + p["lstm.bias_ih_l0"]
        nn, np = self.jax.nn, self.np

        def step(state: Any, x: Any) -> Any:
            h, c = state
            x = x + h @ p["lstm.weight_hh_l0"].T + p["lstm.bias_hh_l0"]
            i, f, g, o = np.split(x, 4, axis=-1)
            c = nn.sigmoid(f) * c + nn.sigmoid(i) * np.tanh(g)
            h = nn.sigmoid(o) * np.tanh(c)
            return (h, c), h

        zeros = np.zeros((tokens.shape[1], HIDDEN))
        _, x = self.lax.scan(step, (zeros, zeros), gates)
        return self.cross_entropy(self.linear(p, "out", x.reshape(-1, HIDDEN)), target.reshape(-1))

    def gpt(self, p: Any, tokens: Any, target: Any) -> Any:
        np = self.np
        b, t = tokens.shape
        x = p["token.weight"][tokens] + p["place.weight"][:t]
        mask = np.tril(np.ones((t, t), bool))
        for k in range(LAYERS):
            name = f"blocks.{k}."
            heads = self.linear(p, name + "qkv", self.layer_norm(p, name + "ln1", x))
            q, key, v = heads.reshape(b, t, 3, HEADS, -1).transpose(2, 0, 3, 1, 4)
            scores = q @ key.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
            y = self.jax.nn.softmax(np.where(mask, scores, -np.inf), axis=-1) @ v
            x = x + self.linear(p, name + "proj", y.swapaxes(1, 2).reshape(b, t, -1))
            y = self.linear(p, name + "up", self.layer_norm(p, name + "ln2", x))
            x = x + self.linear(p, name + "down", self.jax.nn.gelu(y, approximate=True))
        logits = self.linear(p, "out", self.layer_norm(p, "ln", x))
        return self.cross_entropy(logits.reshape(-1, TOKENS), target.reshape(-1))


def with_jax(jax: Any, kind: Any, name: str, shapes: Shapes, arrays: list[np.ndarray]) -> Starter:
    """The same step: weights are passed through, their buffers donated."""
    loss = getattr(_Jax(jax), name)

    def start() -> Call:
        state = {key: jax.numpy.array(array) for key, array in weights(shapes).items()}
        batch = [jax.numpy.asarray(array) for array in arrays]
        if kind is evaluation:
            run = jax.jit(loss)
            return lambda: run(state, *batch).block_until_ready()
        if kind is gradients:
            slopes = jax.jit(jax.grad(loss, argnums=(0, 1)))
            return lambda: jax.block_until_ready(slopes(state, *batch))[1]

        def step(state: Any, *batch: Any) -> Any:
            value, slopes = jax.value_and_grad(loss)(state, *batch)
            return jax.tree_util.tree_map(lambda p, g: p - LR * g, state, slopes), value

        compiled = jax.jit(step, donate_argnums=0)

        def call() -> Any:
            nonlocal state
            state, value = compiled(state, *batch)
            jax.block_until_ready(state)
            return value

        return call

    return start


def _shapes(space: Any, model: Any) -> Shapes:
    return {name: tuple(p.shape) for name, p in model(space).named_parameters()}


Kind = Callable[..., Starter]


def workloads(peers: Peers) -> list[Workload]:
    """Training steps, a block's gradients, and convolutions in evaluation."""
    tokens = _classes(TOKENS, 16, LENGTH + 1)
    words = _classes(VOCABULARY, 36, 20)
    kinds: list[tuple[str, Kind, Any, list[np.ndarray]]] = [
        ("LeNet step", training, lenet, [_images(64, 1, 28), _classes(10, 64)]),
        ("residual block, fwd+bwd", gradients, residual, [_images(16, 32, 32)]),
        ("convolutions, evaluation", evaluation, convolutions, [_images(16, 3, 32)]),
        ("LSTM language model step", training, language_model, [words[:-1], words[1:]]),
        ("GPT step", training, gpt, [tokens[:, :-1].copy(), tokens[:, 1:].copy()]),
    ]
    found = []
    for name, kind, model, arrays in kinds:
        columns = peers.torch_like()
        contenders = {c: kind(space, wrap, model, arrays) for c, space, wrap in columns}
        if peers.jax is not None and columns:
            shapes = _shapes(columns[0][1], model)
            contenders["jax.jit"] = with_jax(peers.jax, kind, model.__name__, shapes, arrays)
        found.append(Workload(name, contenders, tolerance=1e-3))
    return found
