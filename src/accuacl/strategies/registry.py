"""The strategies by name, built in and registered, and their options: keyword arguments, declared in the signature.

    def mine(query: Query, *, heat: Annotated[float, Option("how far to look", least=0)] = 1.0) -> Selection:

Everything else is derived from that: what `select` accepts, `--option heat=0.5` on the command line, `options:` in YAML
files, the settings of runs and projects, and what reports say. The annotation is optional: an option without one has
the type of its default and no help.

A strategy is imported when it is asked for.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np

from accuacl.base.errors import InputError, a_type, check_new_name, near, no_such
from accuacl.base.lazy import Registry
from accuacl.base.userfile import REGISTERED, is_loaded, load_file, required_arguments, with_place

if TYPE_CHECKING:
    from accuacl.strategies.api import Selection

REGISTRY: Registry[Callable[..., Selection]] = Registry(  # by name: "file:function"
    "accuacl.strategies",
    {
        "uniform": "simple:uniform",
        "entropy": "simple:entropy",
        "least-confidence": "simple:least_confidence",
        "margin": "simple:margin",
        "kcenter": "kcenter:kcenter",
        "kcenter+memory": "kcenter:kcenter_memory",
        "badge": "badge:badge",
        "badge+memory": "badge:badge_memory",
        "bait": "bait:bait",
        "accuacl": "accuacl:accuacl",
        "accuacl-magnitude": "accuacl:accuacl_magnitude",
        "accuacl-distribution": "accuacl:accuacl_distribution",
        "accuacl-full": "accuacl:accuacl_full",
        "coverage": "coverage:coverage",
        "coverage+memory": "coverage:coverage_memory",
        "uncertain-coverage": "coverage:uncertain_coverage",
        "fisher-ratio": "fisher_ratio:fisher_ratio",
        "typiclust": "typiclust:typiclust",
        "direct": "rare_classes:direct",
        "anchoral": "rare_classes:anchoral",
        "accuacl+uniform": "accuacl:accuacl_uniform",
        "accuacl+coverage": "accuacl:accuacl_coverage",
    },
)
BUILT_IN = tuple(REGISTRY)
BY_LABEL = ("direct", "anchoral")  # those that use the classes of the labelled examples


def strategy_names() -> tuple[str, ...]:
    """The names of all strategies, including those that users have registered.

    >>> strategy_names()[:3]
    ('uniform', 'entropy', 'least-confidence')
    """
    return tuple(REGISTRY)


def register(name: str) -> Callable[[Callable[..., Selection]], Callable[..., Selection]]:
    """Register a strategy under a name: for `select`, for runs and sweeps, and on the command line.

    >>> import numpy as np
    >>> from accuacl.features import Features
    >>> from accuacl.strategies import Query, Selection, select
    >>> @register("first")
    ... def first(query: Query) -> Selection:
    ...     return Selection(np.arange(query.budget), {})
    >>> select("first", pool=Features(np.eye(4, 2), np.full((4, 2), 0.5)), budget=2).indices
    array([0, 1])
    >>> del REGISTRY["first"]
    """
    check_new_name("strategy", name, [*REGISTRY, "full"])

    def keep(strategy: Callable[..., Selection]) -> Callable[..., Selection]:
        check_signature(name, strategy)
        REGISTRY[name] = strategy
        REGISTERED.append(("strategy", name))
        return strategy

    return keep


def load_plugins(paths: Iterable[Path]) -> list[str]:
    """Import users' files, each once, which register their objects; returns the names of the new strategies."""
    known = set(REGISTRY)
    for path in paths:
        if not is_loaded(path):
            before = len(REGISTERED)
            load_file(path)
            if len(REGISTERED) == before:
                raise InputError(
                    f'{path} registers nothing; put @accuacl.register("name") above your strategy; for a learner, a '
                    "memory policy or a stream take the `register` of accuacl.experiments.learners, .memory or .data."
                )
    return [name for name in REGISTRY if name not in known]


def check_signature(name: str, strategy: Callable[..., Any]) -> None:
    """Refuse a strategy that cannot be called with a query alone."""
    if not callable(strategy):
        raise InputError(f"the strategy {name} is {a_type(strategy)}; register a function of a Query.")
    who = with_place(f"the strategy {name}", strategy)
    try:
        parameters = list(inspect.signature(strategy).parameters.values())
    except ValueError:  # of some that are written in C
        raise InputError(f"the strategy {name} is {strategy!r}; register a function of a Query.") from None
    if not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
        raise InputError(f"{who} takes no query; give it one argument, the Query.")
    for argument in (each for each in required_arguments(strategy) if each != parameters[0].name):
        raise InputError(f"{who} has a required argument {argument}; give it a default.")


KINDS = (bool, int, float, str)


@dataclass(frozen=True)
class Option:
    """What a strategy declares about one of its keyword arguments.

    An author gives `help` and the limits; the other fields are read from the signature.
    """

    help: str = ""
    least: float = -math.inf
    most: float = math.inf
    name: str = ""
    kind: type | None = None  # bool, int, float or str; None: any
    choices: tuple[str, ...] = ()
    optional: bool = False  # whether None is a value: the strategy then decides
    default: Any = None

    @property
    def expected(self) -> str:
        """Which values are allowed, as a phrase.

        >>> Option(least=0, most=1, kind=float).expected, Option(least=1, kind=int).expected
        ('a number from 0 to 1', 'a whole number of at least 1')
        """
        if self.choices:
            return " or ".join(map(repr, self.choices))
        if self.kind is bool:
            return "false or true"
        if self.kind not in (int, float):
            return "text"
        what = "a whole number" if self.kind is int else "a number"
        if self.least > -math.inf and self.most < math.inf:
            return f"{what} from {_short(self.least)} to {_short(self.most)}"
        return f"{what} of at least {_short(self.least)}" if self.least > -math.inf else what

    def check(self, value: Any, typed: str = "") -> Any:
        """Return the value as the strategy takes it; raise InputError if the declaration does not allow it.

        typed: the text that the value was read from, if it was.
        """
        if self.kind is None or (value is None and self.optional):
            return value
        if self.kind is bool:
            if isinstance(value, bool | np.bool_):
                return bool(value)
        elif self.kind is str:
            if isinstance(value, str) and value in (self.choices or (value,)):
                return value
        elif _is_number(value, self.kind) and self.least <= value <= self.most:
            return self.kind(value)
        raise InputError(f"{self.name} is {typed or repr(value)}; give {self.expected}.")

    def read(self, value: Any) -> Any:
        """As `check`, for a value from a file or a command line, where a number may be text.

        >>> Option(name="share", least=0, most=1, kind=float).read("0.5")
        0.5
        """
        if isinstance(value, str) and self.kind is not str:
            kinds = KINDS[:-1] if self.kind is None else (self.kind,)
            values = [each for kind in kinds if (each := _typed(kind, value)) is not None]
            return self.check(values[0], value) if values else self.check(value)
        return self.check(value)


def _is_number(value: Any, kind: type) -> bool:
    """Whether the value is a finite number of this kind, Python's or NumPy's; booleans are not numbers."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral if kind is int else numbers.Real):
        return False
    return math.isfinite(value)


def _typed(kind: Any, text: str) -> Any:
    """The number or truth value that a text spells, or None."""
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower())
    try:
        return kind(text)
    except ValueError:
        return None


def _short(limit: float) -> str:
    """A number without needless digits.

    >>> _short(1), _short(1e-6)
    ('1', '1e-6')
    """
    return f"{limit:g}".replace("e-0", "e-").replace("e+0", "e")


def options_of(name: str) -> dict[str, Option]:
    """A strategy's options by name: the arguments that follow the query in its signature.

    >>> list(options_of("accuacl-distribution")), list(options_of("uniform"))
    (['variant', 'keep', 'total_classes', 'lam'], [])
    """
    if not isinstance(name, str) or name not in REGISTRY:
        raise no_such("strategy", name, REGISTRY)
    return declared_options(REGISTRY[name])


def takes_sample(name: str) -> bool:
    """Whether a strategy can choose from a sample of the pool; a plugin may mean something else by `sample`.

    >>> takes_sample("coverage"), takes_sample("uniform")
    (True, False)
    """
    return hasattr(REGISTRY[name], "by_sample")  # as `coverage.by_sample` declares


@functools.cache  # reading a signature takes 0.1 ms
def declared_options(strategy: Callable[..., Any]) -> dict[str, Option]:
    """The options that a signature declares."""
    try:
        signature = inspect.signature(strategy, eval_str=True)
    except Exception:  # annotations of a plugin may have names that only type checkers see
        signature = inspect.signature(strategy)
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = [each for each in signature.parameters.values() if each.kind not in several]
    return {parameter.name: _option(parameter) for parameter in parameters[1:]}


def _option(parameter: inspect.Parameter) -> Option:
    annotated, default = parameter.annotation, parameter.default
    annotation, *notes = get_args(annotated) if get_origin(annotated) is Annotated else (annotated,)
    option = next((note for note in notes if isinstance(note, Option)), Option())
    types = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    kinds = [each for each in types if each is not NoneType]
    kind: Any = kinds[0] if len(kinds) == 1 else None
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    if choices:
        kind = str
    elif annotation is parameter.empty:
        kind = type(default)
    return replace(
        option,
        name=parameter.name,
        kind=kind if kind in KINDS else None,
        choices=choices,
        optional=default is None or NoneType in types,
        default=default,
    )


def check_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a strategy, each as it takes it; an InputError says what is wrong with one.

    >>> check_options("accuacl", {"lam": 1})
    {'lam': 1.0}
    >>> check_options("accuacl", {"lamda": 0.5})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    accuacl.base.errors.InputError: accuacl has no option 'lamda'; did you mean lam? Its options are variant, ...
    """
    declared = _declared(name, options)
    return {option: declared[option].check(value) for option, value in options.items()}


def read_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """As `check_options`, for values from a file or a command line, where numbers may be text."""
    declared = _declared(name, options)
    return {option: declared[option].read(value) for option, value in options.items()}


def _declared(name: str, given: Iterable[str]) -> dict[str, Option]:
    """A strategy's options; refuses a given name that is not one of them."""
    declared = options_of(name)
    for option in given:
        if option not in declared:
            meant = near(option, declared)
            known = f"its options are {', '.join(declared)}" if declared else "it has no options"
            known = f"did you mean {meant}? {known.capitalize()}" if meant else known
            raise InputError(f"{name} has no option {option!r}; {known}.")
    return declared


def split_options(words: Iterable[str]) -> dict[str, str]:
    """Parse options that people type as `name=value`.

    >>> split_options(["heat=0.5", "depth=3"])
    {'heat': '0.5', 'depth': '3'}
    """
    options: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise InputError(f"--option is {word!r}; give a name and a value, such as --option share=0.3.")
        if name in options:
            raise InputError(f"--option {name} is given twice; give one value.")
        options[name] = value.strip()
    return options


def options_help(name: str) -> str:
    """The help of an option, after the strategies that have it (without variants); it means the same in all of them.

    >>> options_help("oversample")
    'bait, accuacl: candidates per pick'
    """
    names = [strategy for strategy in BUILT_IN if name in options_of(strategy)]
    shown = [each for each in names if not any(each.startswith((f"{other}-", f"{other}+")) for other in names)]
    return f"{', '.join(shown)}: {options_of(names[0])[name].help}"
