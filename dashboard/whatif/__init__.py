"""The What-if page: the effect of a chain of transforms on a finished run or on vectors."""
