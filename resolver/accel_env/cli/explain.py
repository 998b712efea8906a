"""`explain ASK...`: why this was picked; `explain --not PKG`: why that was not."""
from __future__ import annotations

from accel_env.cli.options import ASKS, BASE, COMMON
from accel_env.cli.table import Option, Verb, Words

NOT = Option("why_not", ("--not",), "Why this is not in the answer.", "PKG[==V][+BUILD]", completes="package")
VERB = Verb(
    ("explain",), "Say why each pick was made, or with --not why something was not.", (NOT, BASE, *COMMON), ASKS,
    "accel-env explain --not flash-attn --device 'Tesla T4' --driver VERSION",
)


def run(words: Words) -> int:
    """Print the reasons; 0, or 4 where there is no combination to explain."""
    from accel_env import app
    from accel_env.cli.request import repeated, request

    unwanted = words.text("why_not")
    if unwanted:
        from accel_env.cli.output import print_answer
        from accel_env.cli.show_why_not import why_not_lines

        print_answer(app.explain_not(request(words, needs_asks=False), unwanted), words.flag("json"), why_not_lines)
        return 0
    from accel_env.cli.show_plan import print_plan

    return print_plan(app.explain(request(words)), words.flag("json"), repeated(words), explained=True)
