"""What is said after a project has forgotten items: how near it is to one that never had them, and what stays."""

from __future__ import annotations

from dataclasses import dataclass

from accuacl.labeling.project.items.tasks import Item

STAY = {  # by kind: what the first task's items were measured for, all at once
    "texts": "how common words are (words.json) and how long vectors are (scale.safetensors)",
    "tables": "means, deviations and quantiles of columns (table.json) and how long rows are (scale.safetensors)",
}
SCALES = "means and deviations of the columns (scale.safetensors)"


@dataclass(frozen=True)
class Forgot:
    """items: as they were. model: whether there is one.

    difference: with examples, by how much the model's weights differ from a fit without the items, relative to the
    largest; with sums, by how much these differ when the items are taken out and put back; None if they had no share.
    as_before: the model is fitted to sums alone, regularised and as sharp as before, since the examples to choose by
    are gone. measured: items of the first task were there when its data were measured.
    """

    items: list[Item]
    kind: str
    by_sums: bool
    model: bool
    difference: float | None = None
    as_before: bool = False
    measured: bool = False

    @property
    def sentences(self) -> list[str]:
        """The proof, and what it does not cover."""
        said = [f"proof: {self._proof()}"]
        if self.as_before:
            said.append(
                "not as if they had never been there: how strongly the model is regularised, one step of a scale, and "
                "how sharp its probabilities are, one number, were chosen with them; the examples to choose by are "
                "erased"
            )
        if self.measured:
            what = STAY.get(self.kind, SCALES)
            if self.kind == "tables" and self.by_sums:
                what = f"names of categories, if the first task has ended, {what}"
            said.append(f"stays: {what}, measured on the whole first task; measured again, all vectors would change")
        return said

    def _proof(self) -> str:
        if self.by_sums and self.difference is not None:
            return f"taken out of the sums and put back, they give the old sums up to {self.difference:.0e}"
        if not self.model:
            return "nothing has been learned yet, so there is no model that could know them"
        if self.difference is None:
            return "they were in no sums; the model is fitted to the sums and examples that are left"
        return f"the model differs from one fitted without them from scratch by {self.difference:.0e}"
