"""Greedy choice of a set of rows that represents all rows: for query strategies and memory policies."""

from accuacl.greedy.coverage import LIMIT
from accuacl.greedy.facility import facility_location
from accuacl.greedy.kernel import distinct, sample, squared_width, unit

__all__ = ["LIMIT", "distinct", "facility_location", "sample", "squared_width", "unit"]
