"""Explanations of rows: in full, as a sentence, and for callers with a scope."""
