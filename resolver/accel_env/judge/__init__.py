"""Judging what is already there, an installed environment or the files that describe one, by the same needs as `solve`."""
