"""What does a saved result look like? Figures, and nothing that computes."""
