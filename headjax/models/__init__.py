"""The decoder, its sites and edits, and weights in public formats."""
