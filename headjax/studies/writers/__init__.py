"""Do heads behind in-context rules write the answer, or cancel it? Paper C."""
