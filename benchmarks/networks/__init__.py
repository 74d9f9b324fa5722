"""Whole networks as PyTorch exports them: mlir-sched beside ONNX Runtime, OpenVINO and PyTorch."""
