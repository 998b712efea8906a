"""accel-env: a compatibility resolver and container builder for accelerators."""
