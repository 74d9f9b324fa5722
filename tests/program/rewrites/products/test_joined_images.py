"""Images joined for a convolution: the same numbers, without copies of the images; and what stays as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from channels_first_networks import function, layer
from iree_cases import FLAGS
from rewriting import applies, assert_same_results, compiled_to, library_for, write

from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.rewrites.products.joined_images import JoinedImages
from mlir_sched.program.rewrites.products.packed import PackedWeights

pytestmark = pytest.mark.promise

CONVOLUTION = "conv_2d_nhwc_hwcf"
OTHER_READER = """
  %twice = arith.addf %joined, %joined : tensor<1x8x8x64xf32>
  %most = tensor.extract_slice %twice[0, 0, 0, 0] [1, 8, 8, 64] [1, 1, 1, 1]
    : tensor<1x8x8x64xf32> to tensor<1x8x8x64xf32>
  %both = arith.addf %most, %out3 : tensor<1x8x8x64xf32>"""


def convolution(n: int, image: str, *, source: str, taps: str, result: str, stride: int = 1) -> str:
    return layer(n, CONVOLUTION, image, (source, taps, result), stride)


def network(*, channels: tuple[int, int] = (32, 32), window: int = 1, stride: int = 1, reader: str = "") -> str:
    """Return two convolutions of an image, one of their joined results, and another one with weights to pack."""
    first, second = channels
    all_channels, size = first + second, (8 - window) // stride + 1
    between = f"1x{size}x{size}x32"
    join = f"""
  %joined = tensor.concat dim(3) %out0, %out1
    : (tensor<1x8x8x{first}xf32>, tensor<1x8x8x{second}xf32>) -> tensor<1x8x8x{all_channels}xf32>"""
    wide = f"{window}x{window}x{all_channels}x32"
    layers = [
        convolution(0, "%image", source="1x8x8x4", taps=f"1x1x4x{first}", result=f"1x8x8x{first}"),
        convolution(1, "%image", source="1x8x8x4", taps=f"1x1x4x{second}", result=f"1x8x8x{second}"),
        join,
        convolution(2, "%joined", source=f"1x8x8x{all_channels}", taps=wide, result=between, stride=stride),
        convolution(3, "%out2", source=between, taps="1x1x32x64", result=f"1x{size}x{size}x64"),
        reader,
    ]
    return function("1x8x8x4", "".join(layers), "%both" if reader else "%out3", f"1x{size}x{size}x64")


def check_numbers(model: Path, flags: tuple[str, ...]) -> None:
    image = np.random.default_rng(0).integers(-2, 3, (1, 8, 8, 4)).astype(np.float32)
    assert_same_results(model, flags, [image], least=100)


@pytest.mark.sweep("landing")
@pytest.mark.parametrize(("window", "stride"), [(1, 1), (3, 1), (3, 2)])
def test_joined_images_are_not_copied(
    window: int, stride: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlir_sched.program.rewrites.products.packed_product.MIN_WINDOW_BYTES", 0)
    model = write(tmp_path, network(window=window, stride=stride))
    flags = library_for(PackedWeights(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"joined_images": 1, "packed_weights": 1}
    assert "memcpy" in compiled_to(model, FLAGS, "flow")
    assert "memcpy" not in compiled_to(model, flags, "flow")
    assert "stream.cmd.copy" not in compiled_to(model, flags, "stream")
    check_numbers(model, flags)


LEFT_ALONE = {
    "images of several sizes": network(channels=(16, 48)),
    "another reader of the joined image": network(reader=OTHER_READER),
    "a filter that stays in the cache": network(window=3),
}


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_is_joined_as_it_was(name: str, tmp_path: Path) -> None:
    model = write(tmp_path, LEFT_ALONE[name])
    assert not applies(JoinedImages(), model)
    flags = library_for(PackedWeights(), model, tmp_path)
    assert "joined_images" not in rewrites_in(compiled_to(model, flags, "preprocessing"))
    check_numbers(model, flags)
