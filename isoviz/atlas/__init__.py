"""The atlas: encoders × layers × measures × ruler, one record per encoder, corpus and protocol.

corpora.py     the bundled corpus of related pairs, and your own
recording.py   an encoder on a corpus
records.py     the records: read and written
"""

from isoviz.atlas import corpora, recording, records
from isoviz.atlas.recording import record
from isoviz.atlas.records import Record

__all__ = ["Record", "corpora", "record", "recording", "records"]
