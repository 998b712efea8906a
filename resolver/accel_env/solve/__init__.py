"""From a problem to a solution or a conflict: `state`, `prune`, `search`, `explain`. No I/O."""
