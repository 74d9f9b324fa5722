"""Networks of other families: random weights with seed 0, batch 1, f32 unless the name says otherwise.

Runs in the environment of the engines, and imports PyTorch, ``transformers`` and ``torchvision`` only when a network is
made. Deep networks are cut to a few layers where the dispatches of further layers are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.networks.families import classifiers, dense, language, sequence, sets, sound, vision

FAMILIES: dict[str, Callable[[], tuple[Any, ...]]] = {
    function.__name__: function
    for function in (
        vision.vit,
        vision.vit_tiny,
        vision.convnext,
        vision.regnet,
        vision.efficientnet,
        vision.swin,
        vision.segformer,
        vision.mlp_mixer,
        vision.mixer_small,
        classifiers.resnet18,
        classifiers.mobilenet_v3_small,
        classifiers.mobilenet_v3_large,
        classifiers.shufflenet_v2,
        classifiers.densenet121,
        classifiers.inception_v3,
        classifiers.regnet_y,
        classifiers.efficientnet_v2_s,
        dense.unet,
        dense.detector_head,
        language.bert_mini,
        language.gpt2_mini,
        language.t5_encoder,
        language.llama,
        language.distilbert_bf16,
        sequence.gru,
        sequence.tcn,
        sets.dlrm,
        sets.pointnet,
        sets.gnn,
        sound.whisper_encoder,
        sound.wav2vec_front,
        sound.speech,
        sound.vocoder,
    )
}
"""Functions that return a module and an example of each of its inputs, by name."""
