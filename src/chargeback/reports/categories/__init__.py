"""Cost categories: their assignments, and their edits."""
