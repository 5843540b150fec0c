"""Closed forms of the parts that vision transformers are made of.

Conventions: FLOPs are 2 x multiply-accumulates of matrix multiplications and convolutions, for one image
(attention scores and the weighting of values included; normalisation, softmax, activations and biases not).
Activations are the elements that those operations put out, attention scores included.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Parameters, FLOPs and activations of a part; parts add up, and `part * n` is n of them in a row."""

    params: int = 0
    flops: int = 0
    activations: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.params + other.params, self.flops + other.flops, self.activations + other.activations
        )

    def __mul__(self, times: int) -> Cost:
        return Cost(self.params * times, self.flops * times, self.activations * times)


@dataclass(frozen=True)
class Analysis:
    """What is known of a network without building it, for one image.

    tokens: length of the (first) sequence that attention sees, with the class token where there is one; 0 for a
    network without attention. The other units are those of `Cost`.
    """

    params: int
    flops: int
    tokens: int
    activations: int


def total(cost: Cost, tokens: int) -> Analysis:
    """The analysis of a whole network from the sum of its parts."""
    return Analysis(cost.params, cost.flops, tokens, cost.activations)


def linear(tokens: int, inputs: int, outputs: int, bias: bool = True) -> Cost:
    """A dense layer on every token."""
    weights = inputs * outputs
    return Cost(weights + outputs * bias, 2 * tokens * weights, tokens * outputs)


def convolution(side: int, kernel: int, inputs: int, outputs: int, bias: bool = False) -> Cost:
    """A square convolution that puts out a map of `side` x `side`."""
    weights = kernel * kernel * inputs * outputs
    return Cost(weights + outputs * bias, 2 * side * side * weights, side * side * outputs)


def norm(width: int) -> Cost:
    """Layer or batch normalisation with scale and shift."""
    return Cost(params=2 * width)


def attention(tokens: int, width: int, heads: int, windows: int = 1, qkv_bias: bool = True) -> Cost:
    """Multi-head self-attention inside each of `windows` groups of `tokens` tokens: qkv, scores, values, projection."""
    everywhere = tokens * windows
    mixing = Cost(
        flops=4 * windows * tokens * tokens * width,
        activations=windows * heads * tokens * tokens + everywhere * width,
    )
    return linear(everywhere, width, 3 * width, qkv_bias) + mixing + linear(everywhere, width, width)


def mlp(tokens: int, width: int, ratio: float) -> Cost:
    """The two dense layers of a transformer block."""
    hidden = int(width * ratio)
    return linear(tokens, width, hidden) + linear(tokens, hidden, width)


def block(tokens: int, width: int, heads: int, ratio: float, qkv_bias: bool = True) -> Cost:
    """A pre-norm transformer block with attention over all tokens."""
    mixing = attention(tokens, width, heads, qkv_bias=qkv_bias)
    return norm(width) * 2 + mixing + mlp(tokens, width, ratio)
