"""What a site's users would gain: its accounting, what the simulation misses, and what might be."""

from hpcgym.site.answer import report_on
from hpcgym.site.log import Reading
from hpcgym.site.told import Told, read_told

__all__ = ["Reading", "Told", "read_told", "report_on"]
