"""Paper B: circuits that a spectrum hints at and an ablation confirms."""
