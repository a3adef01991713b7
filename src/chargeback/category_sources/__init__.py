"""Where the entries of cost categories come from: files that others maintain, read by plugins."""
