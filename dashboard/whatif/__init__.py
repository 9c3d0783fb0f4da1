"""The What-if page: a finished run, a chain of transforms, what becomes of it."""
