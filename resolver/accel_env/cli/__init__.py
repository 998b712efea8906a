"""The command line: one small file per verb, each a row of options and a `run` that calls `app` and prints."""
