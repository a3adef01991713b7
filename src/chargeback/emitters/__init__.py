"""Emitters write finished days to other places than the store: files, a scraped endpoint, or those of a plugin."""
