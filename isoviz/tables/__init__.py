"""The one reader of files that people bring: tables of texts, labels and vectors, and arrays.

    catalogue.py   what is this file? by its content, then its ending
    kinds/         the formats
    protocol.py    what a format declares
    formats.py     any table, whole, its first rows or in batches
    arrays.py      any array
    text_files.py  CSV, TSV and lines
    json_rows.py   JSON lines, and the shapes in which vectors stand in JSON
    hub_rows.py    data sets of the hub, through `datasets`
    stores/        databases, by URL

All tables are pyarrow's: it decodes only the requested columns, in batches, and has one table type for every format. Tasks make
pandas frames of the rows they check. Everything here raises an `InputError` in the user's terms.
"""
