"""The options of a run's strategy as settings: checked, completed and named as the strategies declare them.

Six options are settings of their own (`--lam 0.5`, `lam: 0.5`); all others are in the setting `options`. Type, range
and help of both are declared in the strategies' signatures, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import Field

from accuacl.base.errors import InputError, near
from accuacl.strategies import (
    BUILT_IN,
    REGISTRY as STRATEGIES,
    options_help,
    options_of,
    read_options,
    takes_sample,
)

OPTIONS = "options"  # the setting that holds the options which are not settings of their own
OPTION_SETTINGS: dict[str, tuple[str, Any]] = {  # whose signature declares it; the value that leaves it to the strategy
    "variant": ("accuacl", "released"),
    "keep": ("accuacl", 0),
    "lam": ("accuacl", None),
    "oversample": ("accuacl", 2.0),
    "share": ("accuacl+uniform", None),
    "uncertainty": ("fisher-ratio", "weighed"),
}
SET_BY_RUNS = ("total_classes",)  # options that a run gives to strategies itself


def option_field(name: str) -> Any:
    """The field of a setting that is an option; `read_option_setting` checks its values."""
    return Field(OPTION_SETTINGS[name][1], description=f"{options_help(name)}.")


def read_option_setting(name: str, value: Any) -> Any:
    """A setting that is an option, checked as its strategy declares it.

    >>> read_option_setting("share", "0.5"), read_option_setting("uncertainty", "ignored")
    (0.5, 'ignored')
    """
    strategy, unset = OPTION_SETTINGS[name]
    if value is None or value == unset:
        return unset
    option = options_of(strategy)[name]
    if option.kind is int:  # such as keep, which is also given as 0
        option = replace(option, least=min(option.least, unset))
    try:
        return option.read(value)
    except InputError:
        raise ValueError(f"give {option.expected}") from None  # what was given is put before it


def uses(strategy: str, name: str) -> bool:
    """Whether a setting is an option of a strategy.

    >>> uses("accuacl", "lam"), uses("bait", "lam"), uses("bait", "oversample"), uses("full", "keep")
    (True, False, True, False)
    """
    if strategy not in STRATEGIES:
        return False
    if name == "sample":
        return takes_sample(strategy)
    return name in OPTION_SETTINGS and name in options_of(strategy)


def flat_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with each of `options` by a name of its own, as the grid of a sweep has them.

    >>> flat_options({"strategy": "coverage", "options": {"sample": [100, 1000]}})
    {'strategy': 'coverage', 'options.sample': [100, 1000]}
    """
    options = settings.get(OPTIONS) or {}
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise InputError(f"options is {options!r}; give names and values, such as options: {{share: 0.3}}.")
    flat = {name: value for name, value in settings.items() if name != OPTIONS}
    return flat | {f"{OPTIONS}.{name.replace('-', '_')}": value for name, value in options.items()}


def overridden(settings: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Flat settings of a file with those given in their places, where `share` and `options.share` are the same.

    >>> overridden({"strategy": "accuacl+uniform", "options.share": 0.3, "seed": 1}, {"share": 0.4})
    {'strategy': 'accuacl+uniform', 'seed': 1, 'share': 0.4}
    """
    strategy = str(given.get("strategy", settings.get("strategy", "accuacl")))

    def meaning(name: str) -> str:
        option = name.removeprefix(f"{OPTIONS}.")
        return option if uses(strategy, option) else name

    replaced = set(map(meaning, given))
    return {name: value for name, value in settings.items() if meaning(name) not in replaced} | dict(given)


def with_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run with its strategy's options checked; those that are settings become these.

    Options may be given as `options: {share: 0.3}` or as `options.share: 0.3`.

    >>> with_options({"strategy": "bait", "options": {"oversample": "3", "ridge": 0.1}})
    {'strategy': 'bait', 'oversample': 3.0, 'options': {'ridge': 0.1}}
    """
    flat = flat_options(given)
    settings = {name: value for name, value in flat.items() if not name.startswith(f"{OPTIONS}.")}
    options = {name.partition(".")[2]: value for name, value in flat.items() if name not in settings}
    strategy = str(settings.get("strategy", "accuacl"))
    own = tuple(OPTION_SETTINGS) if strategy in BUILT_IN else ()  # options of plugins stay as they are given
    return with_typed_options(strategy, settings, options, ("sample", *own))


def with_typed_options(
    strategy: str, settings: Mapping[str, Any], options: Mapping[str, Any], own: Iterable[str] = ("sample",)
) -> dict[str, Any]:
    """The settings with the options of the strategy, checked. own: those that are settings of their own.

    >>> with_typed_options("coverage", {"seed": 1}, {"sample": "70"})
    {'seed': 1, 'sample': 70}
    >>> with_typed_options("kcenter", {}, {"sample": 70})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    accuacl.base.errors.InputError: kcenter has no option 'sample'; ...
    """
    options = check_run_options(strategy, options)
    settings = {name: value for name, value in settings.items() if name != OPTIONS}
    for name in (name for name in own if name in options and uses(strategy, name)):
        if name in settings:
            raise InputError(f"{name} is given by --option and by --{name}; give one of them.")
        value = options.pop(name)
        settings |= {} if value is None else {name: value}
    return settings | ({OPTIONS: options} if options else {})


def check_run_options(strategy: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run's strategy, typed; those of a strategy that is not known are left to be refused with it."""
    if strategy == "full" and options:
        raise InputError(f"full labels everything and has no option {next(iter(options))!r}; leave it out.")
    if strategy not in STRATEGIES:
        return dict(options)
    for name, value in options.items():
        if name in SET_BY_RUNS:
            raise InputError(f"{name} is set automatically; leave it out.")
        if isinstance(value, list | dict):
            raise InputError(f"{name} is {value!r}, but a run has one value; `accuacl sweep` does several runs.")
    return read_options(strategy, options)


def without_foreign_options(given: Mapping[str, Any], strategies: Iterable[str]) -> dict[str, Any]:
    """The flat settings of a run without the options that only other strategies of its sweep have.

    >>> without_foreign_options({"strategy": "uniform", "options.sample": 9, "memory": 5}, ["uniform", "coverage"])
    {'strategy': 'uniform', 'memory': 5}
    """
    strategies = [strategy for strategy in strategies if strategy in STRATEGIES]
    known = {name for strategy in strategies for name in options_of(strategy)}
    own = options_of(str(given["strategy"])) if given.get("strategy") in strategies else known
    rest = {}
    for name, value in given.items():
        option = name.removeprefix(f"{OPTIONS}.")
        if option != name and option not in known and len(strategies) > 1:
            hint = f"did you mean {meant}?" if (meant := near(option, known)) else "leave it out."
            raise InputError(f"none of the strategies {', '.join(strategies)} has the option {option!r}; {hint}")
        if option == name or option in own or option not in known:
            rest[name] = value
    return rest


def options_for(config: Mapping[str, Any], strategy: str) -> dict[str, Any]:
    """The options that a run gives to a strategy: the settings that are not at their defaults, and `options`.

    strategy: the config's, or the one that chooses the first round.
    """
    values = {
        name: options_of(declared_by)[name].read(config[name])
        for name, (declared_by, unset) in OPTION_SETTINGS.items()
        if uses(strategy, name) and config[name] != unset
    }
    return values | (config.get(OPTIONS, {}) if strategy == config["strategy"] else {})


def canonical_options(config: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The config without the options that say what the strategy does anyway, and which settings of options are unused.

    A plugin that is not loaded may use them all.
    """
    strategy, rest = str(config["strategy"]), dict(config)
    if strategy not in STRATEGIES:
        return rest, set(OPTION_SETTINGS) if strategy == "full" else set()
    usual = {name: option.default for name, option in options_of(strategy).items()}
    given = options_for(config, strategy)
    unused = {name for name in OPTION_SETTINGS if name not in given or given[name] == usual[name]}
    options = {name: value for name, value in rest.pop(OPTIONS, {}).items() if value != usual.get(name)}
    return rest | ({OPTIONS: options} if options else {}), unused
