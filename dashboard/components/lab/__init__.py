"""People's own vectors on a page without a server, computed by the playground's engine."""
