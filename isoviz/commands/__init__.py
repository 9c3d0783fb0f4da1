"""The command line: one module per verb, with its options (`add_options`) and what it does (`run`); `isoviz.__main__` dispatches."""
