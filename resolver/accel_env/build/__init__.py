"""Container engines: build a rendered folder, look at the result, run it, compare two results. The only door to an engine."""
