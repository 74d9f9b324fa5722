"""Networks computed channels last: the same numbers, and hardly a transpose left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from channels_first_networks import function, layer, network
from iree_cases import FLAGS
from rewriting import applies, compiled_to, library_for, run, write

from mlir_sched.compiler import ModelCompileError, compile_to_bytes
from mlir_sched.compiler.model import rewrites_in
from mlir_sched.program.rewrites import ChannelsLast


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("channels_last"), network())


@pytest.fixture(scope="module")
def flags(model: Path) -> tuple[str, ...]:
    return library_for(ChannelsLast(), model, model.parent)


def test_a_network_computes_the_same(model: Path, flags: tuple[str, ...]) -> None:
    image = np.random.default_rng(0).integers(-4, 5, (1, 4, 18, 18)).astype(np.float32)
    expected = run(compile_to_bytes(model, FLAGS), [image])
    assert np.unique(expected).size > 100
    np.testing.assert_array_equal(run(compile_to_bytes(model, flags), [image]), expected)


def test_every_convolution_and_pooling_is_converted_and_counted(model: Path, flags: tuple[str, ...]) -> None:
    text = compiled_to(model, flags, "preprocessing")
    assert rewrites_in(text) == {"channels_last": 5}
    assert "nchw" not in text


def test_transposes_stay_at_the_ends_alone(model: Path, flags: tuple[str, ...]) -> None:
    dispatches = [line for line in compiled_to(model, flags, "flow").splitlines() if "flow.dispatch @" in line]
    assert sum("transpose" in line for line in dispatches) <= 2
    assert any("depthwise" in line or "conv" in line for line in dispatches)


def test_a_library_for_another_network_is_an_error(tmp_path: Path, flags: tuple[str, ...]) -> None:
    other = write(tmp_path, network().replace("pooling_nchw_max", "pooling_nchw_sum"))
    with pytest.raises(ModelCompileError):
        compile_to_bytes(other, flags)


def test_a_single_convolution_stays_channels_first(tmp_path: Path) -> None:
    one = layer(0, "conv_2d_nchw_fchw", "%image", ("1x4x20x20", "16x4x3x3", "1x16x18x18"), 1)
    text = function("1x4x20x20", one, "%out0", "1x16x18x18")
    assert not applies(ChannelsLast(), write(tmp_path, text))
