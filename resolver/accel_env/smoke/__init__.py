"""Whether an environment really works: checks that run without this project, and their reports."""
