"""Reports: finished runs as tables and plots, the paper's figures beside ours.

    from accuacl.experiments import report
    report.write([Path("runs")], Path("report.html"))

Rows are read (`collecting`), put into groups that differ in their seed only (`groups`), measured (`measures`), compared
with a baseline (`comparison`) and with the paper (`paper`), and made into a document of tables and figures
(`documents`), which HTML, Markdown and LaTeX each render in their own way (`formats`). Nothing is run again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.report.document import *
    from accuacl.experiments.report.groups import *
    from accuacl.experiments.report.writing import write as write

__getattr__, __dir__ = lazy_attributes(
    __name__,
    document="FORMATS",
    groups="Group make_groups show",
    writing="write",
)
