"""What a site's users would gain: its accounting, what the simulation misses, and what might be."""

from hpcgym.site.answer import report_on
from hpcgym.site.log import Reading

__all__ = ["Reading", "report_on"]
