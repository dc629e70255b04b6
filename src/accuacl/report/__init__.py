"""Reports: finished runs as tables, plots and plain words, the paper's figures beside ours.

    from accuacl import report
    report.write([Path("runs")], Path("report.html"))

Rows are collected, put into groups that differ in their seed only, and made into a document of tables, figures and
sentences, which HTML, Markdown and LaTeX each render in their own way. Nothing is run again.

The way of the rows: collect -> statistics -> tables and figures -> one_run or many_runs -> formats -> write.
"""

from typing import TYPE_CHECKING

from accuacl.base.front import front_door

if TYPE_CHECKING:
    from accuacl.report.formats import FORMATS
    from accuacl.report.query_costs import write_efficiency
    from accuacl.report.statistics.groups import Group, make_groups
    from accuacl.report.statistics.settings import show
    from accuacl.report.writing import write

__all__ = ["FORMATS", "Group", "make_groups", "show", "write", "write_efficiency"]

__getattr__ = front_door(__name__)
