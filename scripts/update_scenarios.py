"""Rewrite the index of the scenarios, `scenarios/README.md`.

python scripts/update_scenarios.py
"""

import sys

from hpcgym.errors import HpcgymError
from hpcgym.output import writing
from hpcgym.registry import shelf_folders
from hpcgym.scenario.readme_table import scenarios_readme


def main() -> int:
    """Write the page."""
    try:
        with writing(shelf_folders("scenarios")[0] / "README.md", force=True) as file:
            file.write_text(scenarios_readme(), encoding="utf-8")
    except HpcgymError as error:
        sys.exit(f"update_scenarios: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
