"""A dev container around the Dockerfile: the same image, started with the device flags of the plan."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from accel_env.render.compose import RenderOptions

if TYPE_CHECKING:
    from accel_env.model import Solution

PATH = ".devcontainer/devcontainer.json"


def devcontainer(solution: Solution, options: RenderOptions) -> str:
    """The text of devcontainer.json."""
    value = {
        "name": f"{solution.stack}, Python {solution.python}",
        "build": {"dockerfile": "../Dockerfile", "context": ".."},
        "runArgs": list(solution.run_args),
        "remoteUser": options.user,
        # The image's user owns its folders by number; renumbering it would add a layer that is not the locked image.
        "updateRemoteUserUID": False,
    }
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
