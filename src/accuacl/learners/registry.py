"""The learners by name. What is written as text is imported when a learner is started: torch is slow to load."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from accuacl.base.errors import InputError
from accuacl.base.front import Registry
from accuacl.base.names import no_such
from accuacl.base.userfile import REGISTERED, with_place
from accuacl.memory import FEATURE_POLICIES

if TYPE_CHECKING:
    from accuacl.learners.loop import Learner
    from accuacl.learners.round import Round

    Start = Callable[[Round], Learner]

L = TypeVar("L", bound="Callable[..., Learner]")

# By name and variant: "file:class".
REGISTRY: dict[str, Registry[Start]] = {
    name: Registry("accuacl.learners", variants)
    for name, variants in {
        "er": {"paper": "er:ER", "original": "er_original:OriginalER"},
        "gss": {"paper": "gss:GSS", "original": "gss_original:OriginalGSS"},
        "der++": {"paper": "derpp:DERpp", "original": "derpp_original:OriginalDERpp"},
        "er-ace": {"paper": "erace:ERACE", "original": "erace:OriginalERACE"},
        "ridge": {"paper": "ridge:Ridge", "original": "ridge:Ridge"},
    }.items()
}
NAMES = tuple(REGISTRY)
PAPER = "paper"  # the memory policy: what the learner itself remembers
AGREEMENT = "agreement"  # the one that needs the model's predictions
MEMORY_POLICIES = (PAPER, *FEATURE_POLICIES, AGREEMENT)
CHANGE_MEMORY_IN_TRAINING = {("er", "original"), ("gss", "original"), ("der++", "original")}


def register(name: str) -> Callable[[L], L]:
    """Make a learner of your own known by its name, in every variant.

    >>> @register("mine")
    ... class Mine: ...
    >>> sorted(REGISTRY.pop("mine"))
    ['original', 'paper']
    """
    if not name or name in REGISTRY:
        raise InputError(f"a learner cannot be called {name!r}; give it a name that is not taken.")

    def keep(learner: L) -> L:
        if not callable(learner):
            raise InputError(f"the learner {name} is a {type(learner).__name__}; register a class.")
        REGISTRY[name] = Registry("accuacl.learners", {"paper": learner, "original": learner})
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
    if not all(callable(getattr(made, verb, None)) for verb in ("train", "remember")):
        raise InputError(
            f"{with_place(f'the learner {name}', learner)} is a {type(made).__name__}, which cannot `train` and "
            "`remember`; register a class that inherits from accuacl.learners.Learner."
        )
    return made
