"""Files of machines, as sites have them: read, counted, laid out as a `hpcgym.machine.Machine`.

`formats` names the formats, a file each. Each turns a text into node and partition records
(`records`), which `layout` makes a machine of.
"""

from hpcgym.machine.files.formats import FORMATS, MachineFile, read_machine
from hpcgym.machine.files.write import to_toml

__all__ = ["FORMATS", "MachineFile", "read_machine", "to_toml"]
