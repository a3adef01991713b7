"""Cost categories: what they assign, and their edits."""
