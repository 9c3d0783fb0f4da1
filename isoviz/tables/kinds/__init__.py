"""The formats that can be read, one file each; `isoviz.tables.catalogue` finds them."""
