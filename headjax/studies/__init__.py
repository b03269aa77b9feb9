"""Studies: measurements composed of interventions, one package a question."""
