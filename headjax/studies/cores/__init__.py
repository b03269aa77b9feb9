"""What do independently trained models share? Few directions, and their map."""
