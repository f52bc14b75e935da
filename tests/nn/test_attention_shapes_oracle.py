"""Multi-head attention with arguments that do not fit each other: PyTorch's errors."""

from __future__ import annotations

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

CALLS = [
    "m(o(3, 3, 4), o(3, 4), o(3, 4))", "m(o(3, 4), o(3, 3, 4), o(3, 4))",
    "m(o(3, 2, 4), o(3, 2, 4), o(3, 2, 4), key_padding_mask=b(3))",
    "m(o(3, 4), o(3, 4), o(3, 4), key_padding_mask=b(1, 3))",
    "m(o(3, 2, 4), o(3, 2, 4), o(3, 2, 4), attn_mask=b(3))",
    "m(o(3, 4), o(3, 4), o(3, 4), attn_mask=b(1, 3, 3))",
    "m(o(3, 4), o(3, 4), o(3, 4), attn_mask=b(2, 3, 3))[0].shape",
    *(f"m(o(3, 2, 4), o(5, 2, 4), o(5, 2, 4), attn_mask=b({size}))[0].shape"
      for size in ("3, 5", "1, 5", "3, 1", "5, 3", "1, 3, 5", "4, 3, 5", "4, 1, 5", "2, 3, 5")),
    *(f"m(o(3, 2, 4), o(5, 2, 4), o(5, 2, 4), key_padding_mask=b({size}))[0].shape"
      for size in ("2, 5", "2, 1", "1, 5", "5, 2")),
    "m(o(3, 4), o(5, 4), o(5, 4), key_padding_mask=b(1))",
    "m(o(3, 4), o(5, 4), o(5, 4), attn_mask=b(1, 5))",
    "m(o(3, 2, 4), o(5, 2, 4), o(4, 2, 4))", "apart(o(3, 2, 4), o(5, 2, 3), o(4, 2, 5))",
    "apart(o(3, 2, 4), o(5, 2, 3), o(5, 2, 5))[0].shape",
    *(f"attend({arguments})[0, 0].shape"
      for arguments in ("o(2), o(3, 2), o(3, 2)", "o(3, 2).half(), o(3, 2), o(3, 2)",
                        "o(3, 2), o(3, 2), o(3, 2).double()", "o(3, 2), o(3, 2), o(3, 2), b(3, 3)",
                        *(f"o(3, 2).{kind}(), o(3, 2).{kind}(), o(3, 2).{kind}(), o(3, 3).{mask}()"
                          for kind in ("float", "double", "bfloat16")
                          for mask in ("half", "long", "float", "double")))),
    *(f"m(o(3, 2, 4), o(3, 2, 4), o(3, 2, 4), attn_mask={mask}, need_weights=False, is_causal=True)"
      "[0].shape" for mask in ("b(2, 2)", "b(1, 3, 3)", "b(3)", "None")),
    "attend(o(1, 2, 2), o(1, 2, 2), o(1, 2, 2), dropout_p=1.5)",
    "attend(o(1, 2, 2), o(1, 2, 2), o(1, 2, 2), dropout_p=-0.25)",
    "attend(o(2, 2), o(2, 2), o(2, 2), enable_gqa=True)",
    "static(static_k=o(2, 2, 2))", "static(static_v=o(2, 2, 2))", "m(o(4), o(4), o(4))",
]  # fmt: skip


def _outcome(lib, call):
    module = lib.nn.MultiheadAttention(4, 2, add_bias_kv=True)

    def static(**given):
        x = lib.ones(2, 1, 4)
        return lib.nn.functional.multi_head_attention_forward(
            x, x, x, 4, 2, module.in_proj_weight, module.in_proj_bias, module.bias_k,
            module.bias_v, False, 0.0, module.out_proj.weight, module.out_proj.bias, **given)

    apart = lib.nn.MultiheadAttention(4, 2, kdim=3, vdim=5)
    names = {"m": module, "o": lib.ones, "static": static, "apart": apart,
             "attend": lib.nn.functional.scaled_dot_product_attention,
             "b": lambda *shape: lib.zeros(shape, dtype=lib.bool)}  # fmt: skip
    try:
        return str(eval(call, names)).replace("torch.", "tracejit.")
    except Exception as error:
        return type(error), str(error).replace("torch.", "tracejit.")


@pytest.mark.parametrize("call", CALLS)
def test_attention_refuses_what_pytorch_refuses(call):
    assert _outcome(tracejit, call) == _outcome(torch, call)
