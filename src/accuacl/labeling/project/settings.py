"""The settings of a project, and the defaults that were measured to be best for each kind of data."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import Field

from accuacl.base.errors import InputError, install, no_such, wrong_setting
from accuacl.base.userfile import is_loaded
from accuacl.experiments import Config, Settings, learners, models, with_typed_options
from accuacl.experiments.heads import pool_learning_of_kind
from accuacl.experiments.networks import WHEELS, is_installed
from accuacl.labeling.project.trust import digest_of, named_plugins
from accuacl.strategies import REGISTRY as STRATEGIES

Kind = Literal["images", "vectors", "texts", "tables", "files"]
PRETRAINED = tuple(WHEELS)
SCRATCH = "conv4"
STATISTICS = "statistics"  # the value of `keep` with which no example of finished tasks is kept
WORD_VECTORS = "word-vectors"  # the model that embeds a text as a word vector followed by TF-IDF columns
WORD_VECTOR_LENGTH = 256  # how many columns the word vector of a text has
NONE = "none"  # no network: vectors are embeddings as they are, table rows are encoded, texts are TF-IDF columns


class ProjectSettings(Settings):
    """Everything that a project's models depend on, except its data and labels."""

    kind: Kind = Field(description="Kind of data: images, vectors, texts, tables or files.")
    strategy: str = Field(
        "",
        description=f"Strategy that chooses what to label: {', '.join(STRATEGIES)}. Unset: coverage, for columns "
        "of numbers and tables it is uncertain-coverage.",
    )
    learner: str = Field(
        "",
        description=f"Learner: {', '.join(learners.NAMES)}. Unset: kernel for texts, embeddings and images under a "
        "frozen network, er for columns of numbers, tables and networks that are trained.",
    )
    pool_learning: Literal["off", "self", "smooth"] = Field(
        "off",
        description="kernel: learn from the unlabelled pool by the head's predictions (self), move rows towards it "
        "(smooth), or not (off). Unset: self for texts, images, files and embeddings, off for columns and tables.",
    )
    memory: int = Field(500, ge=0, description="How many labelled examples of past tasks are replayed.")
    keep: Literal["examples", "statistics"] = Field(
        "examples",
        description="What ridge keeps of finished tasks: their examples, or statistics alone (sums of each class).",
    )
    ridge_by: Literal["examples"] = Field(
        "examples",
        description="Where ridge keeps statistics alone, its regularisation is chosen on the examples that are left.",
    )
    memory_policy: str = Field(
        "",
        description=f"{Config.model_fields['memory_policy'].description} Unset: coverage where a network is trained.",
    )
    first_round: Literal["uniform", "coverage", ""] = Field(
        "",
        description="How each task's first round is chosen: at random (uniform), or to cover the pool (coverage). "
        "Unset: coverage, except for uniform and for networks that are trained.",
    )
    per_round: int = Field(50, ge=1, description="Labels to ask for in each round.")
    rounds: int = Field(4, ge=1, description="Rounds per task; --first-round sets how the first is chosen.")
    budget_total: int = Field(
        0,
        ge=0,
        description="The most labels that the whole project may use, instead of --rounds for each task; its tasks "
        "share them evenly.",
    )
    budget_tasks: int = Field(
        0,
        ge=0,
        description="How many tasks share --budget-total. 0: unknown; the labels left are shared evenly with every "
        "task that waits, or with one more if none does.",
    )
    sample: int = Field(
        5000,
        ge=0,
        description="If the pool is larger, coverage chooses from a random sample of this many items, at least 20 for "
        "each label of a round; 0: from the whole pool, which may be slow.",
    )
    holdout: float = Field(
        0.3, ge=0, lt=1, description="Share of each task's first round that is held out for estimates."
    )
    close_at: float = Field(
        1.0,
        gt=0,
        le=1,
        description="Close a round once this share is labelled and nobody is working on the rest, which is dropped.",
    )
    overlap: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Share of each round that two people label, to see whether they agree; the first label counts.",
    )
    model: str = Field(
        "",
        description=f"{' or '.join(PRETRAINED)} (images, with the extra `label`), {SCRATCH} (images, from scratch), "
        f"{WORD_VECTORS} (texts, with the extra `label`), {NONE} (vectors, tables, texts), or your own: "
        "FILE.py:FUNCTION, for texts also MODEL.onnx with its tokenizer.json beside it. Unset: the first of these that "
        "is possible.",
    )
    weights: str = Field("", description="Weights for your own model, as safetensors.")
    runtime: Literal["auto", "onnxruntime", "openvino", "openvino-bf16", "torch"] = Field(
        "torch",
        description="Runtime for a frozen image network. Unset: auto, the fastest that is installed and agrees with "
        "torch, chosen with the first images for the whole project.",
    )
    finetune: bool = Field(False, description="Train the whole model, not only a head on its embedding.")
    head: Literal["linear", "mlp", "projection"] = Field(
        "linear",
        description="Head on embeddings: linear, mlp, or projection (random and wide; ridge leaves it as drawn). "
        "Unset: mlp for columns of numbers and tables that er learns, else linear.",
    )
    width: int = Field(
        128, ge=1, description="Hidden width of --head mlp, or width of --head projection (2048 unless given)."
    )
    image_size: int = Field(0, ge=0, description="Side of images in pixels; 0: 224, or 64 from scratch.")
    mean: tuple[float, ...] = Field((), description="For your own model: pixel means in [0, 1]; unset: ImageNet's.")
    std: tuple[float, ...] = Field(
        (), description="For your own model: standard deviations of pixels; unset: ImageNet's."
    )
    text_features: int = Field(4096, ge=16, description="For texts: number of TF-IDF columns that words are hashed to.")
    words: Literal["spaces", "scripts"] = Field(
        "spaces",
        description="For texts: where TF-IDF words end, at spaces and punctuation (spaces), or characters and pairs of "
        "them where a script has no spaces, like Chinese, Japanese and Thai (scripts). Unset: scripts.",
    )
    epochs: int = Field(
        50, ge=1, description="Epochs of training after each round. Unset: 50, or 30 for networks that are trained."
    )
    batch: int = Field(32, ge=1, description="Batch size.")
    lr: float = Field(
        0.05,
        gt=0,
        description="Learning rate; it falls along a cosine to 0.001. Unset: 0.05, for --head mlp 0.02, for networks "
        "that are trained 0.03.",
    )
    momentum: float = Field(0.9, ge=0, lt=1, description="SGD's momentum.")
    weight_decay: float = Field(1e-4, ge=0, description="SGD's weight decay.")
    seed: int = Field(0, ge=0, description="Seed of all randomness.")
    threads: int = Field(1, ge=1, description="Threads; results are bit for bit the same only for the same number.")
    device: str = Field("cpu", description="cpu, cuda, cuda:1 or auto.")
    digest: str = Field("", description="SHA-256 of your own model's file and weights.")
    options: dict[str, bool | int | float | str | None] = Field(
        {}, description="Options of the strategy by name, such as {share: 0.3}."
    )
    plugins: dict[str, str] = Field({}, description="SHA-256 of your own Python files, by their paths.")

    _more_rounds: dict[int, int] = pydantic.PrivateAttr(default_factory=dict)  # {task: rounds that leads have added}

    @pydantic.model_validator(mode="after")
    def _known(self) -> ProjectSettings:
        if self.plugins_loaded:
            if self.strategy not in STRATEGIES:
                raise no_such("strategy", self.strategy, STRATEGIES)
            with_typed_options(self.strategy, {}, self.options)
            if self.learner not in learners.REGISTRY:
                raise no_such("learner", self.learner, learners.REGISTRY)
            learners.check_policy(self.memory_policy, self.learner, "paper")
        names = {"images": (*PRETRAINED, SCRATCH), "texts": (WORD_VECTORS, NONE), "files": ()}.get(self.kind, (NONE,))
        if self.model not in names and not self.sentence_model and (not self.own or self.kind == "tables"):
            if self.kind == "files":
                raise InputError(
                    "files need your own --model FILE.py:FUNCTION, a function that takes the path of a file and gives "
                    "a vector of numbers."
                )
            own = {"tables": "", "texts": ", or your own as FILE.py:FUNCTION or MODEL.onnx"}
            own_model = own.get(self.kind, ", or your own as FILE.py:FUNCTION")
            raise InputError(f"there is no model {self.model!r} for {self.kind}; give {' or '.join(names)}{own_model}.")
        if self.weights and not self.own:
            raise InputError("--weights goes with your own --model FILE.py:FUNCTION only; leave it out.")
        if self.weights and self.kind in ("texts", "files"):
            raise InputError(f"your own model of {self.kind} loads its weights itself; leave --weights out.")
        if self.finetune and not self.has_network:
            raise InputError(f"--finetune has no network to train for {self.kind}; leave it out.")
        if self.exact and not self.frozen:
            raise InputError(
                f"{self.learner} learns on embeddings that stay as they are; leave out --finetune, and for images "
                "install accuacl[label] or give your own --model."
            )
        if self.exact and self.head == "mlp":
            raise InputError(
                f"{self.learner} cannot train --head mlp; give --head linear or projection, or another --learner."
            )
        if self.pool_learning != "off" and self.learner != "kernel":
            raise InputError(f"--pool-learning goes with --learner kernel, not {self.learner}; leave it out.")
        if self.keep == "statistics" and (self.learner != "ridge" or self.head != "linear"):
            raise InputError("only --learner ridge with --head linear learns from sums; give both, or --keep examples.")
        if self.keep == "statistics" and self.strategy == "accuacl-full":
            raise InputError("accuacl-full looks at all past examples, which --keep statistics erases; choose another.")
        if self.budget_tasks and not self.budget_total:
            raise InputError("--budget-tasks says how many tasks share --budget-total; give both, or neither.")
        if len(self.mean) != len(self.std) or not all(value > 0 for value in self.std):
            raise InputError("--mean and --std go together: one number for each channel, standard deviations above 0.")
        return self

    def rounds_of(self, task: int) -> int:
        """Return how many rounds a task has, including added ones; 0 under --budget-total, which fixes no number."""
        return 0 if self.budget_total else self.rounds + self._more_rounds.get(task, 0)

    @property
    def own(self) -> bool:
        """Whether the model is a function in the user's own Python file."""
        file, _, function = self.model.rpartition(":")
        return file.endswith(".py") and function.isidentifier()

    @property
    def sentence_model(self) -> bool:
        """Whether the model is an ONNX file that embeds texts, with its tokenizer.json beside it."""
        return self.kind == "texts" and self.model.endswith(".onnx")

    @property
    def has_network(self) -> bool:
        """Whether a torch network comes before the head."""
        return self.kind not in ("texts", "files") and self.model != NONE

    @property
    def files(self) -> list[Path]:
        """The files that the model is loaded from, except those of this package."""
        if self.model == WORD_VECTORS:
            return list(word_vector_files() or ())
        if self.sentence_model:
            return [Path(self.model), Path(self.model).with_name("tokenizer.json")]
        return [Path(path) for path in (self.model.rpartition(":")[0], self.weights) if path] if self.own else []

    @property
    def plugins_loaded(self) -> bool:
        """Whether this process has run the project's plugins. Before, it does not know what they register."""
        return all(is_loaded(Path(path)) for path in self.plugins)

    def check_files(self) -> None:
        """Refuse a model whose files have changed since the project began."""
        if digest_of(*self.files) != self.digest:
            if not self.files:
                raise InputError(f"this project encodes texts with the word vectors of wordllama; {install('label')}.")
            which = " or ".join(map(str, self.files))
            raise InputError(f"{which} has changed since this project began; restore it.")

    @property
    def exact(self) -> bool:
        """Whether the learner solves for the head in one step, from all labels so far."""
        return self.learner in learners.REGISTRY and learners.REGISTRY[self.learner].exact

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """The ranges of embedding columns for which kernels are computed separately; empty: one range for all."""
        n, both = WORD_VECTOR_LENGTH, self.model == WORD_VECTORS and self.head == "linear"
        return ((0, n), (n, n + self.text_features)) if both else ()

    @property
    def frozen(self) -> bool:
        """Whether the network stays as it is and only a head on its embedding is trained."""
        return not self.finetune and self.model != SCRATCH

    @property
    def side(self) -> int:
        """The side in pixels of the images that the model sees."""
        return self.image_size or (64 if self.model == SCRATCH else 224)

    def as_config(self) -> Config:
        """Return the settings as the configuration of a run, for the loop. A project has no benchmark."""
        same = self.model_dump(
            include={"strategy", "learner", "memory", "rounds", "epochs", "batch", "lr", "momentum", "weight_decay"}
            | {"seed", "threads", "device", "memory_policy", "first_round", "options", "pool_learning"}
        )
        labels = self.per_round * self.rounds
        return Config.model_construct(**same, labels=labels, replay="cycled", evaluate="round", model=self.head)


def make(given: dict[str, Any], embeddings: bool = False) -> ProjectSettings:
    """Return settings with the given values; all others have the defaults for the kind of data.

    embeddings: whether vectors come from a network, as those of images and texts do, or are columns of a table.
    """
    if given.get("plugins"):
        given = given | {"plugins": named_plugins(given["plugins"])}
    if given.get("budget_total") and "rounds" in given:
        raise InputError("--rounds and --budget-total cannot be combined: a task has rounds until its share is used.")
    kind = str(given.get("kind"))
    model = str(given.get("model") or "")
    if not model and kind == "images":
        model = next(filter(is_installed, PRETRAINED), SCRATCH)
    model = model or (WORD_VECTORS if kind == "texts" and word_vector_files() else NONE)
    trained = model == SCRATCH or bool(given.get("finetune"))
    defaults: dict[str, Any] = {**_measured_best(kind, trained, given, embeddings)}
    strategy = str(given.get("strategy", defaults["strategy"]))
    if given.get("options"):
        given = with_typed_options(strategy, given, given["options"])
    if trained:
        defaults |= {"epochs": 30, "lr": 0.03}
    elif given.get("head", defaults["head"]) == "mlp":
        defaults["lr"] = 0.02  # at a higher rate, training may diverge
    if given.get("head") == "projection":
        defaults["width"] = models.PROJECTED
    file, _, function = model.rpartition(":")
    if file.endswith(".py"):
        model = f"{Path(file).expanduser().resolve()}:{function}"
    elif model.endswith(".onnx"):
        model = str(Path(model).expanduser().resolve())
    if given.get("weights"):
        given = given | {"weights": str(Path(given["weights"]).expanduser().resolve())}
    try:
        settings = ProjectSettings(**(defaults | given | {"model": model}))
    except pydantic.ValidationError as error:
        raise wrong_setting(error) from None
    if model == WORD_VECTORS and not settings.files:
        raise InputError(f"--model {WORD_VECTORS} needs the extra `label`; give --model {NONE}, or {install('label')}.")
    return settings.model_copy(update={"digest": digest_of(*settings.files)}) if settings.files else settings


def _measured_best(kind: str, trained: bool, given: dict[str, Any], embeddings: bool) -> dict[str, str]:
    """Return the settings that docs/strategies.md found best for this kind of data.

    trained: the whole network is trained, not only a head.
    """
    own_head = given.get("head") == "mlp" or given.get("memory_policy", learners.PAPER) != learners.PAPER
    columns = kind == "tables" or (kind == "vectors" and not embeddings)
    ridge = given.get("keep") == "statistics" or not (trained or columns or own_head)
    exact = "ridge" if given.get("keep") == "statistics" or given.get("head") == "projection" else "kernel"
    learner = given.get("learner", exact if ridge else "er")
    known = learners.REGISTRY.get(str(learner), learners.REGISTRY["ridge"])  # an unknown learner is refused later
    return {
        "strategy": "uncertain-coverage" if columns else "coverage",
        "learner": learner,
        "head": "mlp" if columns and learner == "er" and not trained else "linear",
        "pool_learning": pool_learning_of_kind(kind, embeddings) if learner == "kernel" else "off",
        "memory_policy": "coverage" if trained and "paper" in known.policy else learners.PAPER,
        "first_round": "uniform" if trained or given.get("strategy") == "uniform" else "coverage",
        "runtime": "auto" if kind == "images" and not trained else "torch",
        "words": "scripts" if kind == "texts" else "spaces",
    }


def word_vector_files() -> tuple[Path, Path] | None:
    """Return the trained token vectors and their tokenizer, if the extra `label` is installed."""
    package = find_spec("wordllama")
    if package is None or package.origin is None or find_spec("tokenizers") is None:
        return None
    folder = Path(package.origin).parent
    vectors = folder / "weights" / "l2_supercat_256.safetensors"
    tokenizer = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
    return (vectors, tokenizer) if vectors.is_file() and tokenizer.is_file() else None
