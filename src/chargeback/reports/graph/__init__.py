"""The graph of an organisation and its costs."""
