"""The programs whose candidates are measured: of every family four shapes, from 20 us to 5 ms on one core.

Half of the products and convolutions have a bias and a relu, as most have in networks. A further family is one entry
of :data:`FAMILIES` and one of :data:`HELD_OUT`.
"""

from collections.abc import Mapping

from benchmarks.operators.shapes import (
    DEPTHWISE,
    bias,
    contraction,
    convolution,
    layer_norm,
    matmul,
    mean,
    reduction,
    relu,
    softmax,
    vecmat,
)

SCORES = "b m k, b n k -> b m n"
"""The batched product of an attention's scores, whose second operand is transposed."""

FAMILIES: Mapping[str, Mapping[str, str]] = {
    "products": {
        "matmul_96x96x160": matmul((96, 96, 160)),
        "matmul_196x256x128": matmul((196, 256, 128), bias, relu),
        "matmul_128x768x384": matmul((128, 768, 384)),
        "matmul_384x512x512": matmul((384, 512, 512), bias, relu),
    },
    "direct convolutions": {
        "conv_14x14x64x96": convolution((1, 16, 16, 64), filters=96),
        "conv_56x56x3x32_strided": convolution((1, 113, 113, 3), bias, relu, filters=32, stride=(2, 2)),
        "conv_28x28x40x64": convolution((1, 30, 30, 40), bias, relu, filters=64),
        "conv_56x56x48x48": convolution((1, 58, 58, 48), filters=48),
    },
    "depthwise convolutions": {
        "depthwise_28x28x144": convolution((1, 30, 30, 144), bias, relu, op=DEPTHWISE),
        "depthwise_28x28x96_strided": convolution((1, 57, 57, 96), op=DEPTHWISE, stride=(2, 2)),
        "depthwise_112x112x32": convolution((1, 114, 114, 32), op=DEPTHWISE),
        "depthwise_28x28x120_5x5": convolution((1, 32, 32, 120), bias, relu, op=DEPTHWISE, kernel=(5, 5)),
    },
    "softmax": {
        "softmax_128x192": softmax((128, 192)),
        "softmax_12x49x49": softmax((12, 49, 49)),
        "softmax_591x197": softmax((591, 197)),
        "softmax_48x4096": softmax((48, 4096)),
    },
    "vector x matrix": {
        "vecmat_512x512": vecmat((512, 512)),
        "vecmat_1280x1000": vecmat((1280, 1000)),
        "vecmat_768x3072": vecmat((768, 3072)),
        "vecmat_4096x1024": vecmat((4096, 1024)),
    },
    "batched products, transposed": {
        "scores_4x49x49x32": contraction((4, 49, 32, 49), SCORES),
        "scores_16x64x64x64": contraction((16, 64, 64, 64), SCORES),
        "scores_3x197x197x64": contraction((3, 197, 64, 197), SCORES),
        "scores_12x128x128x64": contraction((12, 128, 64, 128), SCORES),
    },
    "1-d and 3-d convolutions": {
        "conv_1d_128x48x64": convolution((1, 130, 48), bias, relu, op="conv_1d_nwc_wcf", kernel=(3,), filters=64),
        "conv_1d_4x248x32x64": convolution((4, 252, 32), op="conv_1d_nwc_wcf", kernel=(5,), filters=64),
        "conv_3d_8x14x14x8x16": convolution((1, 10, 16, 16, 8), op="conv_3d_ndhwc_dhwcf", kernel=(3, 3, 3), filters=16),
        "conv_3d_4x28x28x16x24": convolution(
            (1, 6, 30, 30, 16), bias, relu, op="conv_3d_ndhwc_dhwcf", kernel=(3, 3, 3), filters=24
        ),
    },
    "layer norms and sums": {
        "layer_norm_196x384": layer_norm((196, 384)),
        "mean_28x28x480": mean((1, 28, 28, 480), (1, 2)),
        "layer_norm_128x768": layer_norm((128, 768)),
        "sum_512x1024": reduction((512, 1024), (1,)),
    },
}
"""The programs by name, those of each family from the shortest to the longest."""
PROGRAMS: Mapping[str, str] = {name: text for programs in FAMILIES.values() for name, text in programs.items()}
"""All programs by name."""

HELD_OUT: Mapping[str, Mapping[str, str]] = {
    "products": {
        "matmul_256x320x192": matmul((256, 320, 192), bias, relu),
        "matmul_160x640x256": matmul((160, 640, 256)),
    },
    "direct convolutions": {
        "conv_28x28x48x80": convolution((1, 30, 30, 48), bias, relu, filters=80),
        "conv_28x28x64x128_strided": convolution((1, 57, 57, 64), filters=128, stride=(2, 2)),
    },
    "depthwise convolutions": {
        "depthwise_56x56x72": convolution((1, 58, 58, 72), op=DEPTHWISE),
        "depthwise_14x14x240_5x5": convolution((1, 18, 18, 240), bias, relu, op=DEPTHWISE, kernel=(5, 5)),
    },
    "softmax": {
        "softmax_196x384": softmax((196, 384)),
        "softmax_8x144x144": softmax((8, 144, 144)),
    },
    "vector x matrix": {
        "vecmat_1024x1536": vecmat((1024, 1536)),
        "vecmat_2048x1000": vecmat((2048, 1000)),
    },
    "batched products, transposed": {
        "scores_6x144x144x48": contraction((6, 144, 48, 144), SCORES),
        "scores_8x100x100x64": contraction((8, 100, 64, 100), SCORES),
    },
    "1-d and 3-d convolutions": {
        "conv_1d_2x160x40x56": convolution((2, 162, 40), bias, relu, op="conv_1d_nwc_wcf", kernel=(3,), filters=56),
        "conv_3d_6x20x20x12x24": convolution(
            (1, 8, 22, 22, 12), op="conv_3d_ndhwc_dhwcf", kernel=(3, 3, 3), filters=24
        ),
    },
    "layer norms and sums": {
        "layer_norm_144x512": layer_norm((144, 512)),
        "sum_384x1536": reduction((384, 1536), (1,)),
    },
}
"""Other shapes of the same families, which are in no set: strategies are judged on them."""
