"""Networks of sequences without attention."""

from typing import Any


def gru() -> tuple[Any, ...]:
    """Return a GRU of 256 features and a sequence of 16 steps; the state after the last step is the result.

    The gates are written out, because IREE 3.13 has neither PyTorch's GRU nor its cell.
    """
    import torch
    from torch import nn

    features = 256

    class LastState(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.of_step, self.of_state = nn.Linear(features, 3 * features), nn.Linear(features, 3 * features)

        def forward(self, steps: Any) -> Any:
            state = torch.zeros(1, features)
            for step in steps.unbind(dim=1):
                reset, update, new = self.of_step(step).chunk(3, dim=1)
                old_reset, old_update, old = self.of_state(state).chunk(3, dim=1)
                update = torch.sigmoid(update + old_update)
                new = torch.tanh(new + torch.sigmoid(reset + old_reset) * old)
                state = update * state + (1.0 - update) * new
            return state

    return LastState(), torch.randn(1, 16, features)


def tcn() -> tuple[Any, ...]:
    """Return a temporal convolutional network and a sequence of 512 steps: causal convolutions, each wider than before.

    A convolution with a dilation reads that many steps apart, and none after its own: padding comes before only.
    """
    import torch
    from torch import nn

    channels, taps = 64, 3

    def causal(dilation: int) -> Any:
        padding = nn.ConstantPad1d(((taps - 1) * dilation, 0), 0.0)
        return nn.Sequential(padding, nn.Conv1d(channels, channels, taps, dilation=dilation), nn.ReLU())

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, dilation: int) -> None:
            super().__init__()
            self.layers = nn.Sequential(causal(dilation), causal(dilation))

        def forward(self, steps: Any) -> Any:
            return torch.relu(steps + self.layers(steps))

    blocks = [Block(2**level) for level in range(6)]
    return nn.Sequential(nn.Conv1d(32, channels, 1), *blocks, nn.Conv1d(channels, 10, 1)), torch.randn(1, 32, 512)
