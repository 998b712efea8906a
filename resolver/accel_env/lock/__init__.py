"""From a solution to a lock: every file of the whole closure, each with its hash."""
