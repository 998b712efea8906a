"""The quick parser: the words of an ordinary command, by the same table that builds the typer application.

Importing typer costs several interpreter starts, more than `resolve` itself. This parser accepts the plain forms
(`--name value`, `--name=value`, `-r file`, `-rfile`, switches, `--`) and declines everything else (help, completion,
unknown or incomplete options, unknown verbs); what it declines goes to typer, which words the answer. A property test
holds the two to the same reading.
"""
from __future__ import annotations

from collections.abc import Sequence

from accel_env.cli.table import Option, Verb
from accel_env.cli.verbs import GROUPS, MODULES, verb_module

Given = dict[str, list[str]]


def parse(words: Sequence[str]) -> tuple[Verb, Given] | None:
    """The verb and what was given to it, or None where typer must read the words."""
    path = tuple(words[: 2 if words and words[0] in GROUPS else 1])
    if path not in MODULES:
        return None
    verb = verb_module(path).VERB
    given = parse_verb(verb, words[len(path):])
    return None if given is None else (verb, given)


def parse_verb(verb: Verb, words: Sequence[str]) -> Given | None:
    """Values by `dest` (a switch as `["1"]`), or None where the words are not plain."""
    flags = {flag: option for option in verb.options for flag in option.flags}
    given: Given = {}
    rest = list(words)
    positional: list[str] = []
    while rest:
        word = rest.pop(0)
        if word == "--":
            positional += rest
            break
        if word == "-" or not word.startswith("-"):
            positional.append(word)
            continue
        option, value = _split(flags, word)
        value = None if option is None else _value(option, value, rest)
        if option is None or value is None:
            return None
        given.setdefault(option.dest, []).append(value)
    if positional:
        if verb.argument is None or (len(positional) > 1 and not verb.argument.many):
            return None
        given[verb.argument.dest] = positional
    return given


def _value(option: Option, glued: str | None, rest: list[str]) -> str | None:
    """The option's value, taken from the following words where it was not glued on; None where it is not plain."""
    if not option.metavar:
        return "1" if glued is None else None
    if glued is None and rest and not rest[0].startswith("-"):
        return rest.pop(0)
    return glued


def _split(flags: dict[str, Option], word: str) -> tuple[Option | None, str | None]:
    """The option that a word names and the value glued to it."""
    if word in flags:
        return flags[word], None
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return flags.get(name), value if equals else None
    short = flags.get(word[:2])
    if short is None or not short.metavar:
        return None, None
    return short, word[2:]
