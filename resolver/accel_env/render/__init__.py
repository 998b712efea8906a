"""From a solution and its lock to the files of an image; pure, no file is read or written here."""

from accel_env.render.compose import RenderOptions as RenderOptions
from accel_env.render.files import render as render
