"""Linear ops with constant weights, and the element-wise ops and moves in front of them and behind them."""
