"""Reports: finished runs as tables, plots and plain words, the paper's figures beside ours.

    from accuacl import report
    report.write([Path("runs")], Path("report.html"))

Rows are collected, put into groups that differ in their seed only, and made into a document of tables, figures and
sentences, which HTML, Markdown and LaTeX each render in their own way. Nothing is run again.

The way of the rows: collect -> statistics -> tables and figures -> one_run or many_runs -> formats -> write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.report.bars import write_efficiency as write_efficiency
    from accuacl.experiments.report.document import FORMATS as FORMATS
    from accuacl.experiments.report.groups import Group as Group, make_groups as make_groups, show as show
    from accuacl.experiments.report.writing import write as write

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "bars": ("write_efficiency",),
        "document": ("FORMATS",),
        "groups": ("Group", "make_groups", "show"),
        "writing": ("write",),
    },
)
