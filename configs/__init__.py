"""Experiments as rows of differences from one base config."""
