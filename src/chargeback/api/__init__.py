"""The HTTP API: routes that read parameters, ask the store and answer; nothing here decides what anything costs."""
