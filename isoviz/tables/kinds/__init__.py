"""The formats that can be read; `isoviz.tables.catalogue` finds them."""
