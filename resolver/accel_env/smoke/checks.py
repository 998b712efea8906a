"""The checks as one program that needs nothing but Python 3.8 and what it tests: what is copied into images.

`program()` gives its text, put together from the modules beside this one. Run as a file, this module is that program.
"""

from __future__ import annotations

import ast
import os
import sys

# In the order of their imports.
PARTS = ("verdict", "elf", "installed", "folders", "static", "packages", "imports", "quant", "device", "kernels", "runner")
HEAD = '''#!/usr/bin/env python3
"""Whether this Python environment works: python3 checks.py --help. Put together by accel-env; do not edit."""

from __future__ import annotations

'''


def program() -> bytes:
    """The source of the program, the same bytes every time."""
    here = os.path.dirname(os.path.abspath(__file__))
    parts = []
    for name in PARTS:
        with open(os.path.join(here, f"{name}.py"), encoding="utf-8") as stream:
            parts.append(f"# --- {name} ---\n{_alone(stream.read()).strip()}\n")
    return (HEAD + "\n\n".join(parts) + '\n\nif __name__ == "__main__":\n    sys.exit(main())\n').encode()


def _alone(source: str) -> str:
    """The source of a part without its docstring and what the other parts bring."""
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    for node in tree.body:
        doc = node is tree.body[0] and isinstance(node, ast.Expr)
        ours = isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("__future__", "accel_env."))
        if doc or ours:
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return "".join(lines)


if __name__ == "__main__":
    # The file under its own name is started again for every check, and comes by here again.
    exec(compile(program(), os.path.abspath(__file__), "exec"), {"__name__": "__main__", "__file__": __file__, "sys": sys})
