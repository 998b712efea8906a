"""Files that describe an environment: each parser gives small values with file and line; `check` judges them like `doctor`."""
