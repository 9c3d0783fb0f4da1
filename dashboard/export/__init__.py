"""Pages, and the lessons with the playground, as self-contained HTML files."""
