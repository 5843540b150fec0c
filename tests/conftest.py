"""Fixtures that several test folders share."""
