"""Permissions: every page, route and command that reads or changes something on the server uses this package."""
