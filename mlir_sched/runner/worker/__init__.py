"""The runner's process: devices, buffers, checks and clocks."""
