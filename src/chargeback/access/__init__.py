"""Who may do what: rights, scopes, and the roles that give them. Pure."""
