"""Parts of the Ruler page: its fields and cards, its figure, and two typed sentences as vectors."""
