"""The one reader of files that people bring: tables of texts, labels and vectors, and arrays.

    text_files.py  CSV, TSV and JSON lines
    formats.py     any table, whole, its first rows or in batches: those, Parquet, Arrow and data sets of the hub
    hub_rows.py    data sets of the hub, through `datasets`
    arrays.py      .npy, .npz and .safetensors
    stores/        databases, by URL

All tables are pyarrow's: it decodes only the requested columns, in batches, and has one table type for every format. Tasks make
pandas frames of the rows they check. Everything here raises an `InputError` in the user's terms.
"""
