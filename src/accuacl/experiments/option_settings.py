"""Settings of a run that are options of its strategy.

Six options are settings of their own (`--lam 0.5`, `lam: 0.5`); all others are in the setting `options`. Type, range
and help of both are declared in the strategies' signatures, and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from accuacl.base.errors import InputError, near
from accuacl.strategies import BUILT_IN, REGISTRY as STRATEGIES, options_help, options_of, read_options

OPTIONS = "options"  # the setting that holds the options which are not settings of their own
OPTION_SETTINGS: dict[str, tuple[str, Any]] = {  # whose signature declares it; what leaves it to the strategy
    "variant": ("accuacl", "released"),
    "keep": ("accuacl", 0),
    "lam": ("accuacl", None),
    "oversample": ("accuacl", 2.0),
    "share": ("accuacl+uniform", None),
    "uncertainty": ("fisher-ratio", "weighed"),
}
SET_BY_RUNS = ("total_classes",)  # options that a run gives to strategies itself


def option_field(name: str) -> Any:
    """The field of a setting that is an option."""
    strategy, unset = OPTION_SETTINGS[name]
    option = options_of(strategy)[name]
    lower = min(option.least, unset) if option.kind is int else option.least
    return Field(
        unset,
        description=f"{options_help(name)}.",
        ge=lower if math.isfinite(lower) else None,
        le=option.most if math.isfinite(option.most) else None,
    )


def with_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with the options among them typed and in their places.

    Options may be given as `options: {share: 0.3}` or as `options.share: 0.3`. Those that are settings of their own
    become these.

    >>> with_options({"strategy": "bait", "options": {"oversample": "3", "lam": 0.1}})
    {'strategy': 'bait', 'oversample': 3.0, 'options': {'lam': 0.1}}
    """
    flat = flat_options(given)
    settings = {name: value for name, value in flat.items() if not name.startswith(f"{OPTIONS}.")}
    options = {name.partition(".")[2]: value for name, value in flat.items() if name not in settings}
    strategy = str(settings.get("strategy", "accuacl"))
    if strategy in STRATEGIES or strategy == "full":  # one that is not known is refused with the other settings
        options = check_run_options(strategy, options)
    own = [name for name in options if name in OPTION_SETTINGS and strategy in BUILT_IN and uses(strategy, name)]
    for name in own:
        if name in settings:
            raise InputError(f"{name} is given as a setting and as an option; give one of them.")
        settings[name] = _as_setting(name, options.pop(name))
    return settings | ({OPTIONS: options} if options else {})


def flat_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with each of `options` by a name of its own, as the grid of a sweep has them.

    >>> flat_options({"strategy": "coverage", "options": {"sample": [100, 1000]}})
    {'strategy': 'coverage', 'options.sample': [100, 1000]}
    """
    options = settings.get(OPTIONS) or {}
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise InputError(f"options is {options!r}; give names and values, such as options: {{share: 0.3}}.")
    flat = {name: value for name, value in settings.items() if name != OPTIONS}
    for name, value in options.items():
        flat[f"{OPTIONS}.{name.replace('-', '_')}"] = value
    return flat


def check_run_options(strategy: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run's strategy, typed."""
    if strategy == "full" and options:
        raise InputError(f"full labels everything and has no option {next(iter(options))!r}; leave it out.")
    for name in SET_BY_RUNS:
        if name in options:
            raise InputError(f"a run sets {name} itself; leave it out.")
    for name, value in options.items():
        if isinstance(value, list | dict):
            raise InputError(f"{name} is {value!r}, but a run has one value; `accuacl sweep` does several runs.")
    return read_options(strategy, options) if options else {}


def without_foreign_options(given: Mapping[str, Any], strategies: Iterable[str]) -> dict[str, Any]:
    """The flat settings of a run without the options that only other strategies of its sweep have.

    >>> without_foreign_options({"strategy": "uniform", "options.sample": 9, "memory": 5}, ["uniform", "coverage"])
    {'strategy': 'uniform', 'memory': 5}
    """
    strategies = [strategy for strategy in strategies if strategy in STRATEGIES]
    known = {name for strategy in strategies for name in options_of(strategy)}
    for name in (name.removeprefix(f"{OPTIONS}.") for name in given if name.startswith(f"{OPTIONS}.")):
        if len(strategies) > 1 and name not in known:
            hint = f"did you mean {meant}?" if (meant := near(name, known)) else "leave it out."
            raise InputError(f"none of the strategies {', '.join(strategies)} has the option {name!r}; {hint}")
    own = options_of(str(given["strategy"])) if given.get("strategy") in strategies else known
    foreign = {f"{OPTIONS}.{name}" for name in known if name not in own}
    return {name: value for name, value in given.items() if name not in foreign}


def _as_setting(name: str, value: Any) -> Any:
    """An option's value as its setting writes it."""
    strategy, unset = OPTION_SETTINGS[name]
    if value is None:
        return unset
    return options_of(strategy)[name].words[value] if isinstance(value, bool) else value


def uses(strategy: str, name: str) -> bool:
    """Whether a setting that is an option holds for a strategy: by the same name it may mean something else.

    >>> uses("accuacl", "lam"), uses("bait", "lam"), uses("bait", "oversample"), uses("full", "keep")
    (True, False, True, False)
    """
    option = None if strategy == "full" else options_of(strategy).get(name)
    return option is not None and (not option.help or option.same_as(options_of(OPTION_SETTINGS[name][0])[name]))


def options_for(config: Mapping[str, Any], strategy: str) -> dict[str, Any]:
    """The options that a run gives to a strategy: the settings that are not at their defaults, and `options`.

    strategy: the config's, or the one that chooses the first round.
    """
    values = {}
    for name, (declared_by, unset) in OPTION_SETTINGS.items():
        if uses(strategy, name) and config[name] != unset:
            values[name] = options_of(declared_by)[name].read(config[name])
    return values | (config.get(OPTIONS, {}) if strategy == config["strategy"] else {})


def canonical_options(config: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The config without the options that say what the strategy does anyway, and which settings of options are unused.

    A plugin that is not loaded may use them all.
    """
    strategy, rest = str(config["strategy"]), dict(config)
    if strategy == "full":
        return rest, set(OPTION_SETTINGS)
    if strategy not in STRATEGIES:
        return rest, set()
    usual = {name: option.default for name, option in options_of(strategy).items()}
    given = options_for(config, strategy)
    unused = {name for name in OPTION_SETTINGS if name not in given or given[name] == usual[name]}
    options = {name: value for name, value in rest.pop(OPTIONS, {}).items() if value != usual.get(name)}
    return rest | ({OPTIONS: options} if options else {}), unused
