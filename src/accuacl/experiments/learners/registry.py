"""The learners by name. What is written as text is imported when a learner is started: torch is slow to load."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from accuacl.base.errors import InputError, check_new_name, no_such
from accuacl.base.lazy import Registry
from accuacl.base.userfile import REGISTERED, takes, with_place
from accuacl.experiments.memory import FEATURE_POLICIES

if TYPE_CHECKING:
    from accuacl.experiments.learners.loop import Learner
    from accuacl.experiments.learners.round import Round

    Start = Callable[[Round], Learner]

L = TypeVar("L", bound="Callable[..., Learner]")

# By name and variant: "file:class".
REGISTRY: dict[str, Registry[Start]] = {
    name: Registry("accuacl.experiments.learners", variants)
    for name, variants in {
        "er": {"paper": "er:ER", "original": "er:OriginalER"},
        "gss": {"paper": "gss:GSS", "original": "gss:OriginalGSS"},
        "der++": {"paper": "derpp:DERpp", "original": "derpp:OriginalDERpp"},
        "er-ace": {"paper": "erace:ERACE", "original": "erace:OriginalERACE"},
        "ridge": {"paper": "ridge:Ridge", "original": "ridge:Ridge"},
    }.items()
}
NAMES = tuple(REGISTRY)
PAPER = "paper"  # the memory policy: what the learner itself remembers
AGREEMENT = "agreement"  # the one that needs the model's predictions
MEMORY_POLICIES = (PAPER, *FEATURE_POLICIES, AGREEMENT)
INHERIT = "register a class that inherits from accuacl.experiments.learners.Learner"
CHANGE_MEMORY_IN_TRAINING = {("er", "original"), ("gss", "original"), ("der++", "original")}


def register(name: str) -> Callable[[L], L]:
    """Make a learner of your own known by its name, in every variant.

    >>> @register("mine")
    ... class Mine:
    ...     def __init__(self, round): ...
    ...     def train(self, progress=None): ...
    ...     def remember(self): ...
    >>> sorted(REGISTRY.pop("mine"))
    ['original', 'paper']
    """
    check_new_name("learner", name, REGISTRY)

    def keep(learner: L) -> L:
        if not callable(learner):
            raise InputError(f"the learner {name} is a {type(learner).__name__}; register a class.")
        who = with_place(f"the learner {name}", learner)
        if not takes(learner, 1):
            raise InputError(f"{who} must take one argument, the Round; {INHERIT}.")
        if inspect.isclass(learner):
            _check_can_learn(who, learner)
        REGISTRY[name] = Registry("accuacl.experiments.learners", {"paper": learner, "original": learner})
        REGISTERED.append(("learner", name))
        return learner

    return keep


def check_policy(policy: str, name: str, variant: str) -> None:
    """Refuse a memory policy that there is not, or that the learner cannot have."""
    policies = (PAPER, *FEATURE_POLICIES, AGREEMENT)  # users may have registered more
    if policy not in policies:
        raise no_such("memory policy", policy, policies)
    if policy != PAPER and name == "ridge":
        raise InputError(f"ridge keeps all: the memory policy {policy} cannot decide what is kept; leave it out.")
    if policy != PAPER and (name, variant) in CHANGE_MEMORY_IN_TRAINING:
        raise InputError(
            f"{name} in its original variant changes its memory at every step of training, so the memory policy "
            f"{policy} cannot decide what is kept; take the variant paper or the memory policy paper."
        )


def start(name: str, round: Round, variant: str = "paper") -> Learner:
    """The learner called `name` at the start of a round.

    Then `train(learner)` trains the round's model in place, and after the last round `learner.remember()` makes the
    task's memory. The two may happen in different processes: a learner that is started again, with the trained model
    and, as its memory, the `buffer` that training has left, remembers the same.
    """
    if name not in REGISTRY:
        raise no_such("learner", name, REGISTRY)
    if variant not in REGISTRY[name]:
        variants = ", ".join(REGISTRY[name])
        raise InputError(f"there is no variant {variant!r} of {name}; its variants are {variants}.")
    check_policy(round.training.policy, name, variant)
    learner = REGISTRY[name][variant]
    made: Learner = learner(round)
    _check_can_learn(with_place(f"the learner {name}", learner), made)
    return made


def _check_can_learn(who: str, learner: Any) -> None:
    """Refuse a learner, or its class, that lacks a verb."""
    lacking = [f"`{verb}`" for verb in ("train", "remember") if not callable(getattr(learner, verb, None))]
    if lacking:
        kind = learner if inspect.isclass(learner) else type(learner)
        raise InputError(f"{who} is a {kind.__name__}, which cannot {' and '.join(lacking)}; {INHERIT}.")
    loop = sys.modules.get(
        "accuacl.experiments.learners.loop"
    )  # there, if the class inherits from it; importing torch takes time
    base = loop.Learner if loop else None
    inherited = [getattr(each, "__func__", each) for each in (learner.train, getattr(learner, "observe", None))]
    if base and inherited == [base.train, base.observe]:
        raise InputError(f"{who} has no `observe`; say there how it learns from one batch.")
