"""`@dataclass(frozen=True, slots=True)` without the price of importing `dataclasses`.

The standard module costs more than a whole interpreter start (it imports `inspect` and compiles six methods per class),
and the types of this project are on the path of every command. This one makes classes that behave the same, to
`dataclasses.replace`, `fields` and `asdict` too, and compiles `__init__` when a class is first used. Type checkers see
the standard one.
"""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
else:
    from operator import attrgetter

    class _Factory:
        """A default that is made anew for each value."""

        __slots__ = ("default_factory",)

        def __init__(self, default_factory):
            self.default_factory = default_factory

    def field(*, default_factory):
        """A field whose default is made by a call."""
        return _Factory(default_factory)

    class _Described:
        """A class attribute of `dataclasses`, computed by that module when somebody asks."""

        def __init__(self, name, annotations, defaults):
            self._name, self._annotations, self._defaults = name, annotations, defaults

        def __get__(self, instance, owner):
            import dataclasses

            spelled = {
                name: dataclasses.field(default_factory=value.default_factory) if isinstance(value, _Factory) else value
                for name, value in self._defaults.items()
            }
            bare = type(owner.__name__, (), {"__annotations__": self._annotations, "__module__": owner.__module__, **spelled})
            return getattr(dataclasses.dataclass(frozen=True)(bare), self._name)

    def dataclass(*, frozen, slots):
        """A decorator for frozen, slotted classes of fields without bases; nothing else is offered."""
        if not (frozen and slots):
            raise TypeError("only frozen=True, slots=True")
        return _make

    def _make(cls):
        if cls.__bases__ != (object,):
            raise TypeError("a frozen class has no bases")
        annotations = dict(cls.__annotations__)
        names = tuple(annotations)
        defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
        dropped = {"__dict__", "__weakref__", *defaults}
        space = {key: value for key, value in cls.__dict__.items() if key not in dropped}
        pick = attrgetter(*names) if len(names) > 1 else lambda self: (getattr(self, names[0]),)
        space.update(_methods(names, pick))
        space.setdefault("__init__", _lazy_init(names, defaults))
        space.update(
            __slots__=names, __match_args__=names, __annotations__=annotations,
            __dataclass_fields__=_Described("__dataclass_fields__", annotations, defaults),
            __dataclass_params__=_Described("__dataclass_params__", annotations, defaults),
        )
        made = type(cls)(cls.__name__, cls.__bases__, space)
        made.__qualname__ = cls.__qualname__
        return made

    def _methods(names, pick):
        def same(self, other):
            return pick(self) == pick(other) if other.__class__ is self.__class__ else NotImplemented

        def show(self):
            inner = ", ".join(f"{name}={value!r}" for name, value in zip(names, pick(self)))  # noqa: B905
            return f"{self.__class__.__qualname__}({inner})"

        def refuse(self, name, *value):
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot change field {name!r}")

        def restore(self, state):
            for name, value in zip(names, state):  # noqa: B905
                object.__setattr__(self, name, value)

        return {
            "__eq__": same, "__hash__": lambda self: hash(pick(self)), "__repr__": show,
            "__setattr__": refuse, "__delattr__": refuse,
            "__getstate__": lambda self: list(pick(self)), "__setstate__": restore,
        }

    def _lazy_init(names, defaults):
        def first(self, *args, **named):
            cls = type(self)
            cls.__init__ = _init(cls, names, defaults)
            cls.__init__(self, *args, **named)

        return first

    def _init(cls, names, defaults):
        # While it is being filled, a value belongs to a class with the same slots that lets itself be written: plain assignments
        # are several times quicker than object.__setattr__ for each field, and thousands of candidates are made at every start.
        open_class = type(cls.__name__, (), {"__slots__": names})
        space = {"_set": object.__setattr__, "_open": open_class, "_shut": cls, "_missing": object()}
        heads, lines = [], [" _set(self, '__class__', _open)"]
        for name in names:
            value = name
            if isinstance(defaults.get(name), _Factory):
                space[f"_make_{name}"] = defaults[name].default_factory
                heads.append(f"{name}=_missing")
                value = f"_make_{name}() if {name} is _missing else {name}"
            elif name in defaults:
                space[f"_default_{name}"] = defaults[name]
                heads.append(f"{name}=_default_{name}")
            else:
                heads.append(name)
            lines.append(f" self.{name} = {value}")
        lines.append(" self.__class__ = _shut")
        exec(f"def __init__(self, {', '.join(heads)}):\n" + "\n".join(lines), space)
        return space["__init__"]
