"""The Papers page: what the four papers print, beside what this engine measures."""
