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
        if option is None:
            return None
        if option.metavar and value is None:
            if not rest or rest[0].startswith("-"):
                return None
            value = rest.pop(0)
        elif not option.metavar:
            if value is not None:
                return None
            value = "1"
        given.setdefault(option.dest, []).append(value or "")
    if positional:
        if verb.argument is None or (len(positional) > 1 and not verb.argument.many):
            return None
        given[verb.argument.dest] = positional
    return given


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
