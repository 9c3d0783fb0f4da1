"""The Explore page: what is asked for, its figures, its map, its numbers."""
