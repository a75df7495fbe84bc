"""How Sphinx builds this documentation."""

from importlib.metadata import version as installed_version

project = "zodbshootout"
author = "The zodbshootout contributors"
copyright = "The zodbshootout contributors"
release = installed_version("zodbshootout")
version = release

exclude_patterns = ["_build", "results/made"]
nitpicky = True
highlight_language = "none"
smartquotes_action = "q"  # two dashes begin an option

html_theme = "furo"
html_title = f"zodbshootout {release}"
