"""Cost categories: which cost centre, team or product pays, on which day."""
