"""The learners by name, with what is known of each before it is imported: torch is slow to load."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from accuacl.base.errors import InputError, a_type, check_new_name, no_such
from accuacl.base.lazy import Registry
from accuacl.base.userfile import REGISTERED, takes, with_place
from accuacl.experiments.memory import POLICIES

if TYPE_CHECKING:
    from accuacl.experiments.learners.loop import Learner
    from accuacl.experiments.learners.round import Round

    Start = Callable[[Round], Learner]

L = TypeVar("L", bound="Callable[..., Learner]")
VARIANTS = ("paper", "original")  # as in the paper's experiments, and as first published


class LearnerEntry(Registry["Start"]):
    """A learner's class by variant, and its properties, available without importing it.

    original: where the variant differs. settings: the settings of a run that only some learners use and this one does,
    with its defaults. fixed: settings that make no difference to it, and what they are then. policy: the variants
    whose memory `--memory-policy` can decide on; the others change theirs while they train, or keep everything.
    replayed: about how many examples it replays or scores for each new one, which estimates of cost need. exact: it
    solves for the head in one step, from all labels so far, on features that stay as they are.
    """

    def __init__(
        self,
        paper: Start | str,
        original: Start | str | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        fixed: Mapping[str, Any] | None = None,
        policy: Collection[str] = VARIANTS,
        replayed: float = 1.0,
        exact: bool = False,
    ) -> None:
        super().__init__("accuacl.experiments.learners", {"paper": paper, "original": original or paper})
        self.settings, self.fixed = dict(settings or {}), dict(fixed or {})
        self.policy, self.replayed, self.exact = tuple(policy), replayed, exact


NO_MEMORY = {"memory": 0, "learner_variant": "paper"}  # settings of learners that keep nothing, or everything
ALL = {"learner_variant": "paper", "sampling": "plain"}  # of those that solve for the head, from all labels
REGISTRY: dict[str, LearnerEntry] = {  # "file:class"
    "er": LearnerEntry("er:ER", "er:OriginalER", settings={"replay": "once"}, policy=["paper"]),
    "gss": LearnerEntry("gss:GSS", "gss:OriginalGSS", policy=["paper"], replayed=1.3),
    "der++": LearnerEntry("derpp:DERpp", "derpp:OriginalDERpp", settings={"alpha": 0.1, "beta": 0.5}, policy=["paper"]),
    "er-ace": LearnerEntry("erace:ERACE", "erace:OriginalERACE"),
    "ridge": LearnerEntry("closed_form:Ridge", fixed=ALL, policy=[], exact=True),
    "kernel": LearnerEntry(
        "closed_form:KernelRidge", settings={"pool_learning": "self"}, fixed=ALL, policy=[], exact=True
    ),
    "icarl": LearnerEntry("distillation:ICaRL", fixed={"learner_variant": "paper"}, policy=[]),
    "lwf": LearnerEntry("distillation:LwF", settings={"alpha": 1.0}, fixed=NO_MEMORY, policy=[], replayed=0.3),
    "finetune": LearnerEntry("er:Finetune", fixed=NO_MEMORY, policy=[], replayed=0.0),
    "joint": LearnerEntry("er:Joint", fixed=NO_MEMORY, policy=[], replayed=2.0),
}
NAMES = tuple(REGISTRY)
SETTINGS = tuple(dict.fromkeys(name for entry in REGISTRY.values() for name in entry.settings))  # that some have
PAPER = "paper"  # the memory policy: what the learner itself remembers
MEMORY_POLICIES = (PAPER, *POLICIES)
INHERIT = "register a class that inherits from accuacl.experiments.learners.Learner"


def register(name: str) -> Callable[[L], L]:
    """Register a learner of your own under a name, in every variant.

    Its class may have the attributes `settings`, `fixed`, `policy`, `replayed` and `exact`, as in `LearnerEntry`.

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
            raise InputError(f"the learner {name} is {a_type(learner)}; register a class.")
        who = with_place(f"the learner {name}", learner)
        if not takes(learner, 1):
            raise InputError(f"{who} must take one argument, the Round; {INHERIT}.")
        if inspect.isclass(learner):
            _check_can_learn(who, learner)
        known = ("settings", "fixed", "policy", "replayed", "exact")
        declared = {attribute: getattr(learner, attribute) for attribute in known if hasattr(learner, attribute)}
        REGISTRY[name] = LearnerEntry(learner, **declared)
        REGISTERED.append(("learner", name))
        return learner

    return keep


def check_policy(policy: str, name: str, variant: str) -> None:
    """Refuse a memory policy that does not exist or that the learner cannot follow."""
    policies = (PAPER, *POLICIES)  # users may have registered more
    if policy not in policies:
        raise no_such("memory policy", policy, policies)
    if policy == PAPER or variant in REGISTRY[name].policy:
        return
    if not REGISTRY[name].policy:
        raise InputError(
            f"what {name} keeps is fixed, so it cannot follow the memory policy {policy}; leave out --memory-policy "
            "(in Python: memory_policy)."
        )
    raise InputError(
        f"{name} in its {variant} variant changes its memory at every step of training, so it cannot follow the memory "
        f"policy {policy}; take the variant {REGISTRY[name].policy[0]} or the memory policy paper."
    )


def start(name: str, round: Round, variant: str = "paper") -> Learner:
    """The learner called `name` at the start of a round.

    Then `learner.train()` trains the round's model in place, and after the last round `learner.remember()` makes the
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
    """Refuse a learner, or its class, that lacks a method."""
    lacking = [f"`{verb}`" for verb in ("train", "remember") if not callable(getattr(learner, verb, None))]
    if lacking:
        kind = f"a {learner.__name__}" if inspect.isclass(learner) else a_type(learner)
        raise InputError(f"{who} is {kind}, which cannot {' and '.join(lacking)}; {INHERIT}.")
    loop = sys.modules.get("accuacl.experiments.learners.loop")  # loaded, if the class inherits from it
    base = loop.Learner if loop else None
    inherited = [getattr(each, "__func__", each) for each in (learner.train, getattr(learner, "observe", None))]
    if base and inherited == [base.train, base.observe]:
        raise InputError(f"{who} has no `observe`; say there how it learns from one batch.")
