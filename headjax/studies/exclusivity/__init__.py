"""Is an intervention on one head exclusive to that head? Paper A."""
