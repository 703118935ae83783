"""The models of `tests.conformance.models` in PyTorch; `t` is the module `torch`.

Parameters are the same trees, of tensors.
"""

from __future__ import annotations

from typing import Any

from tests.conformance import models


def layer_norm(t: Any, x: Any, g: Any) -> Any:
    return t.nn.functional.layer_norm(x.float(), x.shape[-1:]).to(x.dtype) * g


def gpt_forward(t: Any, p: Any, tokens: Any) -> Any:
    tokens = tokens.long()
    b, n = tokens.shape
    x = p["embed"][tokens] + p["place"][:n]
    for block in p["blocks"]:
        q, k, v = (layer_norm(t, x, block["norm1"]) @ block["qkv"]).chunk(3, -1)
        q, k, v = (y.reshape(b, n, models.HEADS, -1).transpose(1, 2) for y in (q, k, v))
        y = t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + y.transpose(1, 2).reshape(b, n, -1) @ block["out"]
        y = layer_norm(t, x, block["norm2"]) @ block["up"]
        x = x + t.nn.functional.gelu(y, approximate="tanh") @ block["down"]
    return (x @ p["embed"].T).float()


def gpt_train(t: Any, p: Any, m: Any, v: Any, tokens: Any) -> Any:
    """A step of `models.adam`: (p, m, v, loss)."""
    leaves, spec = t.utils._pytree.tree_flatten(p)
    with t.enable_grad():
        leaves = [x.detach().requires_grad_() for x in leaves]
        made = gpt_forward(t, t.utils._pytree.tree_unflatten(leaves, spec), tokens[:, :-1])
        loss = t.nn.functional.cross_entropy(
            made.reshape(-1, made.shape[-1]), tokens[:, 1:].reshape(-1).long()
        )
        gradient = t.autograd.grad(loss, leaves)
    m, v = (t.utils._pytree.tree_leaves(x) for x in (m, v))
    m = [0.9 * a + 0.1 * g for a, g in zip(m, gradient, strict=True)]
    v = [0.99 * a + 0.01 * g * g for a, g in zip(v, gradient, strict=True)]
    moved = [
        x.detach() - 1e-3 * a / (b.sqrt() + 1e-3) for x, a, b in zip(leaves, m, v, strict=True)
    ]
    return *(t.utils._pytree.tree_unflatten(x, spec) for x in (moved, m, v)), loss.detach()


def resnet_forward(t: Any, p: Any, x: Any) -> Any:
    """Images in NHWC; inside, PyTorch's tensors have its own order of dimensions over the same
    memory ("channels last")."""
    relu = t.nn.functional.relu

    def unit(x: Any, u: Any, stride: int = 1) -> Any:
        w = u["w"].permute(3, 2, 0, 1)
        padding = [_same(n, w.shape[2], stride) for n in x.shape[2:]]
        (top, bottom), (left, right) = padding
        x = t.nn.functional.pad(x, (left, right, top, bottom))
        x = t.nn.functional.conv2d(x, w, stride=stride)
        return t.nn.functional.batch_norm(x, None, None, u["g"], u["b"], True, 0.1, 0.1)

    x = relu(unit(x.permute(0, 3, 1, 2), p["stem"], 2))
    low, high = _same(x.shape[2], 3, 2)
    x = t.nn.functional.pad(x, (low, high, low, high), value=float("-inf"))
    x = t.nn.functional.max_pool2d(x, 3, 2)
    blocks = iter(p["blocks"])
    for stage, (count, _) in enumerate(models.STAGES):
        for number in range(count):
            block = next(blocks)
            stride = 2 if number == 0 and stage else 1
            y = relu(unit(x, block["a"]))
            y = unit(relu(unit(y, block["b"], stride)), block["c"])
            x = relu(y + (unit(x, block["skip"], stride) if "skip" in block else x))
    return x.mean((2, 3)) @ p["head"]


def _same(size: int, window: int, stride: int) -> tuple[int, int]:
    """What padding "SAME" adds before and after."""
    total = max((-(-size // stride) - 1) * stride + window - size, 0)
    return total // 2, total - total // 2
