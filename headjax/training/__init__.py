"""From batches of tokens to checkpoints, on one device or many."""
