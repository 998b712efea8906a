"""`resolve ASK...`: pick a working combination; writes nothing."""
from __future__ import annotations

from accel_env.cli.options import ASKS, BASE, COMMON
from accel_env.cli.table import Verb, Words

VERB = Verb(
    ("resolve",), "Pick a working combination; writes nothing.", (BASE, *COMMON), ASKS,
    "accel-env resolve torch bitsandbytes --device 'Tesla V100' --driver VERSION",
)


def run(words: Words) -> int:
    """Print the plan or the refusal; 0 or 4."""
    from accel_env import app
    from accel_env.cli.request import repeated, request
    from accel_env.cli.show_plan import print_plan

    return print_plan(app.resolve(request(words)), words.flag("json"), repeated(words))
