"""Where finished days are written besides the store: files, a scraped endpoint, whatever a plugin brings."""
