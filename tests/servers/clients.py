"""Sections of clients of a server."""

from __future__ import annotations

USE = (
    "<zodb one>\n<clientstorage>\nserver $it\n<ssl>\ncertificate $it_certificate\nkey $it_key\n"
    "authenticate $it_authority\n</ssl>\n</clientstorage>\n</zodb>\n"
)
