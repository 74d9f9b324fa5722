"""What a network's convolutions take with blocked channels, beside what they take with channels last."""
