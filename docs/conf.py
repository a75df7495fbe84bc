"""How Sphinx builds this documentation."""

from importlib.metadata import version as installed_version

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
