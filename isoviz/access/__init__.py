"""Who may do what. Every page, route and command that changes or reads something on the server passes through this room."""
