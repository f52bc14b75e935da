"""Expressions of a program that are tensors, as far as its text tells.

In: a program's tree and its names of torch. Out: for an attribute, the method of `Tensor` that it
is. Called by `torch_uses`. A name counts as a tensor if all that is bound to it in its function is
one: a result of torch's functions, of arithmetic with a tensor, of a layer, or an annotated
argument. In doubt it is none: `check` warns of nothing that may be right.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

# Functions and methods whose result is one tensor, whatever their arguments are.
_SAME = frozenset("""
abs acos add addmm amax amin arange argmax argmin argsort as_tensor asin atan atan2 baddbmm
bernoulli bmm cat ceil clamp clone conv1d conv2d conv3d cos cosh cumprod cumsum diag diagonal div
dot einsum empty empty_like erf erfc exp expm1 eye flatten flip floor frac full full_like gather ge
gt hstack index_add index_select isfinite isinf isnan le lerp linspace log log10 log1p log2
log_softmax logical_and logical_not logical_or logit logsumexp logspace lt masked_fill
masked_select matmul mean mm movedim mul multinomial mv narrow neg norm normal ones ones_like outer
permute pow prod rand rand_like randint randint_like randn randn_like randperm reciprocal
relu remainder repeat_interleave reshape roll round rsqrt scatter scatter_add select sigmoid sign
sin sinh softmax sqrt square squeeze stack sub sum t take tan tanh tensor tensordot tile trace
transpose tril triu true_divide trunc unsqueeze vstack zeros zeros_like
""".split())
_FUNCTIONAL = frozenset("""
adaptive_avg_pool2d avg_pool2d batch_norm binary_cross_entropy binary_cross_entropy_with_logits
conv1d conv2d conv3d conv_transpose2d cosine_similarity cross_entropy dropout elu embedding gelu
group_norm huber_loss interpolate kl_div l1_loss layer_norm leaky_relu linear log_softmax mse_loss
nll_loss normalize one_hot pad relu scaled_dot_product_attention sigmoid silu smooth_l1_loss softmax
softplus tanh unfold
""".split())
_METHODS = _SAME | frozenset("""
bfloat16 bool byte contiguous cpu cuda detach double expand expand_as float half int long
new_empty new_full new_ones new_tensor new_zeros repeat requires_grad_ reshape_as short squeeze to
type_as unfold view view_as
""".split())
_ATTRIBUTES = frozenset(["T", "mT", "H", "mH", "data", "grad", "real", "imag"])
# Layers whose call gives one tensor.
_LAYERS = frozenset("""
AdaptiveAvgPool2d AvgPool2d BCELoss BCEWithLogitsLoss BatchNorm1d BatchNorm2d Conv1d Conv2d Conv3d
ConvTranspose2d CrossEntropyLoss Dropout ELU Embedding Flatten GELU GroupNorm L1Loss LayerNorm
LeakyReLU Linear LogSoftmax MSELoss MaxPool2d NLLLoss ReLU SiLU Sigmoid Softmax Softplus Tanh
""".split())
# Methods of PyTorch's tensors that are missing here; no other library has these names.
LACKING = frozenset("""
chalf geqrf hash_tensor resize_as_sparse_ slice_inverse smm sparse_resize_
sparse_resize_and_clear_ sspaddmm to_mkldnn to_padded_tensor to_sparse_bsc to_sparse_bsr
""".split())
TENSOR, LAYER = "tensor", "layer"
_OPEN = "open"  # while types are found: nothing speaks against any type yet
_ROUNDS = 30
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
Scope = dict[str, str]


class TensorTypes:
    """Types of the expressions in one program: `tensor`, `layer`, or "" for all others."""

    def __init__(self, tree: ast.Module, aliases: dict[str, str]):
        self.aliases = aliases
        self.scope_of: dict[ast.AST, Scope] = {}
        stores = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute)
                  and isinstance(n.ctx, ast.Store)]
        self.own = {node.attr for node in stores}  # attributes that the program sets
        self.shared = {name for n in ast.walk(tree) if isinstance(n, (ast.Global, ast.Nonlocal))
                       for name in n.names}  # other functions bind them too
        self._enter(tree, {})

    def method(self, node: ast.Attribute) -> str:
        """Return `Tensor.name` for an attribute of a tensor; "" for others."""
        if not isinstance(node.ctx, ast.Load) or node.attr in self.own:
            return ""
        if node.attr in LACKING or self.type_of(node.value, self.scope_of.get(node, {})) == TENSOR:
            return f"Tensor.{node.attr}"
        return ""

    def _enter(self, root: ast.AST, outer: Scope) -> None:
        """Find the types of the names that are bound in one function, then in those within."""
        nodes = list(_own_nodes(root))
        bound: dict[str, list[ast.expr | str]] = {}
        for name, value in [*self._arguments(root), *self._bindings(nodes)]:
            bound.setdefault(name, []).append(value)
        scope = {**outer, **dict.fromkeys(bound, _OPEN)}
        for _ in range(_ROUNDS):  # names are made of names, as in `x = x + 1`
            before = dict(scope)
            for name, values in bound.items():
                kinds = {self._kind(value, scope) for value in values} - {_OPEN}
                scope[name] = _OPEN if not kinds else kinds.pop() if len(kinds) == 1 else ""
            if before == scope:
                break
        else:
            scope |= dict.fromkeys(bound, "")
        for node in nodes:
            self.scope_of[node] = scope
            if isinstance(node, _FUNCTIONS):
                self._enter(node, scope)

    def _kind(self, value: ast.expr | str, scope: Scope) -> str:
        return value if isinstance(value, str) else self.type_of(value, scope)

    def type_of(self, node: ast.expr, scope: Scope) -> str:
        """Return the type of an expression in a scope."""
        if isinstance(node, ast.Name):
            return "" if node.id in self.shared else scope.get(node.id, "")
        if isinstance(node, ast.Call):
            return self._type_of_call(node, scope)
        if isinstance(node, (ast.BinOp, ast.Compare)):
            if _is_text(node.left) or isinstance(node, ast.Compare) and _asks(node):
                return ""
            sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.left]
            kinds = {self.type_of(side, scope) for side in sides}
            return TENSOR if TENSOR in kinds else _OPEN if _OPEN in kinds else ""
        if isinstance(node, ast.UnaryOp):
            return "" if isinstance(node.op, ast.Not) else self._same(node.operand, scope)
        if isinstance(node, ast.Subscript):
            return self._same(node.value, scope)
        if isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES - self.own:
            return self._same(node.value, scope)
        return ""

    def _same(self, node: ast.expr, scope: Scope) -> str:
        """Return the type of what is a tensor if the expression is one."""
        kind = self.type_of(node, scope)
        return kind if kind in (TENSOR, _OPEN) else ""

    def _type_of_call(self, node: ast.Call, scope: Scope) -> str:
        from tracejit.commands.torch_uses import dotted_name

        dotted = dotted_name(node.func, self.aliases)
        place, _, name = dotted.rpartition(".")
        if place == "torch":
            return TENSOR if name in _SAME and not _has(node, "out") else ""
        if place == "torch.nn.functional":
            return TENSOR if name in _FUNCTIONAL else ""
        if place == "torch.nn":
            return LAYER if name in _LAYERS else ""
        if not dotted and isinstance(node.func, ast.Attribute):
            base = node.func.attr.removesuffix("_")
            same = node.func.attr in _METHODS or base in _METHODS
            return self._same(node.func.value, scope) if same else ""
        called = self.type_of(node.func, scope)
        return TENSOR if called == LAYER else _OPEN if called == _OPEN else ""

    def _annotated(self, node: ast.expr | None) -> str:
        from tracejit.commands.torch_uses import dotted_name

        return TENSOR if node and dotted_name(node, self.aliases) == "torch.Tensor" else ""

    def _arguments(self, root: ast.AST) -> Iterator[tuple[str, ast.expr | str]]:
        if not isinstance(root, _FUNCTIONS):
            return
        given = root.args
        for one in (*given.posonlyargs, *given.args, *given.kwonlyargs):
            yield one.arg, self._annotated(one.annotation)
        for several in (given.vararg, given.kwarg):
            if several is not None:
                yield several.arg, ""

    def _bindings(self, nodes: list[ast.AST]) -> Iterator[tuple[str, ast.expr | str]]:
        """Yield (name, value) of each binding; the value is "" where the text does not tell."""
        simple: set[ast.AST] = set()
        for node in nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        simple.add(target)
                        yield target.id, node.value
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                simple.add(node.target)
                yield node.target.id, ast.BinOp(node.target, node.op, node.value)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                simple.add(node.target)
                if node.value is not None:
                    yield node.target.id, self._annotated(node.annotation) or node.value
            elif isinstance(node, ast.NamedExpr):
                simple.add(node.target)
                yield node.target.id, node.value
        yield from ((name, "") for node in nodes if node not in simple for name in _bound_by(node))


def _has(node: ast.Call, keyword: str) -> bool:
    return any(given.arg == keyword for given in node.keywords)


def _own_nodes(root: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function or module without those inside its functions."""
    todo = list(ast.iter_child_nodes(root))
    while todo:
        node = todo.pop(0)
        yield node
        if not isinstance(node, _FUNCTIONS):
            todo += ast.iter_child_nodes(node)


def _bound_by(node: ast.AST) -> list[str]:
    """Return the names that a node binds to what its text does not tell."""
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    return []


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))


def _asks(node: ast.Compare) -> bool:
    return any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops)
