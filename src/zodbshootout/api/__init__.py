"""Modules from which plug-ins import: one module per group of entry points, and one for tests.

``docs/api.rst`` lists the names, and promises to keep them.
"""

from zodbshootout.plugins import API_VERSION as VERSION

__all__ = ["VERSION"]
