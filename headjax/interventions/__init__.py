"""Edits of many heads at once, and what they do to a metric."""
