"""Closed forms of the parts that vision transformers are made of.

Conventions: FLOPs are 2 x multiply-accumulates of matrix multiplications and convolutions, for one image
(attention scores and the weighting of values included; normalisation, softmax, activations and biases not).
Activations are the elements that those operations put out, attention scores included.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Cost:
    """Parameters, FLOPs and activations of a part; parts add up, and `part * n` is n of them in a row.

    convolution_flops: those FLOPs that are of convolutions, the cutting into patches not among them. blocks: blocks
    with attention; sparse_blocks: those of them that see a part of the map only. widths, head_widths: sums over the
    blocks. unstored: those activations that training does not store for every image: scores in fused attention, and
    what a whole batch shares.
    """

    params: int = 0
    flops: int = 0
    activations: int = 0
    convolution_flops: int = 0
    blocks: int = 0
    sparse_blocks: int = 0
    widths: int = 0
    head_widths: int = 0
    unstored: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(one + more for one, more in zip(self._parts(), other._parts(), strict=True)))

    def __mul__(self, times: int) -> Cost:
        return Cost(*(part * times for part in self._parts()))

    def _parts(self) -> tuple[int, ...]:
        return (
            self.params,
            self.flops,
            self.activations,
            self.convolution_flops,
            self.blocks,
            self.sparse_blocks,
            self.widths,
            self.head_widths,
            self.unstored,
        )


@dataclass(frozen=True)
class Analysis:
    """What is known of a network without building it, for one image.

    tokens: length of the (first) sequence that attention sees, with the class token where there is one; 0 for a
    network without attention. depth: blocks with attention. width, head_width: of their heads together and of one, on
    average. sparse_share: share of those blocks that see a part of the map only. convolution_share: share of the FLOPs
    that convolutions take, the cutting into patches not among them. unstored: activations that training does not store
    for every image. The other units are those of `Cost`.
    """

    params: int
    flops: int
    tokens: int
    activations: int
    depth: int
    width: float
    head_width: float
    sparse_share: float
    convolution_share: float
    unstored: int

    def to_dict(self) -> dict[str, float]:
        """By name, without `unstored`: that one says what training does, not what the network is."""
        return {key: value for key, value in asdict(self).items() if key != "unstored"}


def total(cost: Cost, tokens: int) -> Analysis:
    """The analysis of a whole network from the sum of its parts."""
    blocks = max(1, cost.blocks)
    return Analysis(
        params=cost.params,
        flops=cost.flops,
        tokens=tokens,
        activations=cost.activations,
        depth=cost.blocks,
        width=cost.widths / blocks,
        head_width=cost.head_widths / blocks,
        sparse_share=cost.sparse_blocks / blocks,
        convolution_share=cost.convolution_flops / max(1, cost.flops),
        unstored=cost.unstored,
    )


def linear(tokens: int, inputs: int, outputs: int, bias: bool = True) -> Cost:
    """A dense layer on every token."""
    weights = inputs * outputs
    return Cost(weights + outputs * bias, 2 * tokens * weights, tokens * outputs)


def convolution(side: int, kernel: int, inputs: int, outputs: int, bias: bool = False) -> Cost:
    """A square convolution that puts out a map of `side` x `side`; inputs: channels that each output reads."""
    one = patches(side, kernel, inputs, outputs, bias)
    return Cost(one.params, one.flops, one.activations, convolution_flops=one.flops)


def patches(grid: int, size: int, channels: int, width: int, bias: bool = True) -> Cost:
    """The cutting of an image into `grid` x `grid` patches with sides of `size` pixels, each projected to `width`."""
    weights = size * size * channels * width
    return Cost(weights + width * bias, 2 * grid * grid * weights, grid * grid * width)


def norm(width: int) -> Cost:
    """Layer or batch normalisation with scale and shift."""
    return Cost(params=2 * width)


def mixing(
    queries: int,
    keys: int,
    width: int,
    heads: int,
    windows: int = 1,
    is_sparse: bool = False,
    is_fused: bool = True,
) -> Cost:
    """Scores and weighting of values in each of `windows` groups, without parameters; counts as the block that it is
    in. width: of all heads together. is_fused: whether one kernel does both, which stores no scores."""
    scores = windows * queries * heads * keys
    return Cost(
        flops=4 * windows * queries * keys * width,
        activations=scores + windows * queries * width,
        blocks=1,
        sparse_blocks=int(is_sparse or windows > 1),
        widths=width,
        head_widths=width // heads,
        unstored=scores * is_fused,
    )


def attention(
    tokens: int, width: int, heads: int, windows: int = 1, qkv_bias: bool = True, is_fused: bool = True
) -> Cost:
    """Multi-head self-attention inside each of `windows` groups of `tokens` tokens: qkv, scores, values, projection."""
    everywhere = tokens * windows
    mixed = mixing(tokens, tokens, width, heads, windows, is_fused=is_fused)
    return linear(everywhere, width, 3 * width, qkv_bias) + mixed + linear(everywhere, width, width)


def mlp(tokens: int, width: int, ratio: float) -> Cost:
    """The two dense layers of a transformer block."""
    hidden = int(width * ratio)
    return linear(tokens, width, hidden) + linear(tokens, hidden, width)


def block(tokens: int, width: int, heads: int, ratio: float, qkv_bias: bool = True) -> Cost:
    """A pre-norm transformer block with attention over all tokens."""
    mixed = attention(tokens, width, heads, qkv_bias=qkv_bias)
    return norm(width) * 2 + mixed + mlp(tokens, width, ratio)
