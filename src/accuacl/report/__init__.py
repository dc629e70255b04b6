"""Reports: finished runs as tables, plots and plain words, the paper's figures beside ours.

    from accuacl import report
    report.write([Path("runs")], Path("report.html"))

Rows are collected, put into groups that differ in nothing but their seed, and made into a document of tables, figures
and sentences, which HTML, Markdown and LaTeX each render in their way. Nothing is ever run again.
"""

from accuacl.report.query_costs import write_efficiency
from accuacl.report.write import FORMATS, write

__all__ = ["FORMATS", "write", "write_efficiency"]
