"""The command line: one module per verb, whose functions' annotations are its options; `isoviz.__main__` dispatches."""
