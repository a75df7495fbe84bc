"""How Sphinx builds this documentation."""

from __future__ import annotations

from importlib.metadata import version as installed_version
from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "zodbshootout"
author = "The zodbshootout contributors"
copyright = "The zodbshootout contributors"
release = installed_version("zodbshootout")
version = release

extensions = ["sphinx.ext.autodoc"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
# Docstrings and annotations also name what the page of plug-ins does not promise.
nitpick_ignore_regex = [("py:.*", ".*")]

exclude_patterns = ["_build", "results/made"]
nitpicky = True
highlight_language = "none"
smartquotes_action = "q"  # two dashes begin an option

html_theme = "furo"
html_title = f"zodbshootout {release}"

man_pages = [("manual", "zodbshootout", "measure and compare ZODB storages", author, 1)]


def name_pages(app: Sphinx, document: nodes.document, _: str) -> None:
    """Replace links to other pages with their titles in the man page.

    With docutils 0.22 and later, Sphinx 9 prints such a link as ``title <>``.
    """
    if app.builder.name == "man":
        for node in list(document.findall(nodes.reference)):
            if node.get("internal"):
                node.replace_self(nodes.emphasis("", node.astext()))


def setup(app: Sphinx) -> None:
    app.connect("doctree-resolved", name_pages)
