"""Fields for models, rows and vectors, on several pages."""
