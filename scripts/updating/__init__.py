"""What the scripts `update_*.py` share: where documents come from, what wheels say, how drafts get into the matrix."""
