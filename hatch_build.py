"""Give a package page README.md without links that lead nowhere there.

Links into the checkout lead to `Repository` of [project.urls]. Without one their text stays, and
pictures are left out. hatchling calls this for each wheel and each source distribution.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")


class PackagePage(MetadataHookInterface):
    """Sets the field `readme`."""

    def update(self, metadata: dict) -> None:
        """Write README.md into the metadata."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")

        def resolve(link: re.Match) -> str:
            mark, words, target = link.groups()
            if repository:
                kind = "raw" if mark else "blob"
                return f"{mark}[{words}]({repository}/{kind}/main/{target})"
            return "" if mark else words

        page = RELATIVE_LINK.sub(resolve, text)
        metadata["readme"] = {"content-type": "text/markdown", "text": page}
