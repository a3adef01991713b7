"""The HTTP API: routes that read parameters, query the store and return responses. No costs are calculated here."""
