"""The matrix: what is known about devices, stacks and builds, read from YAML into frozen values."""
