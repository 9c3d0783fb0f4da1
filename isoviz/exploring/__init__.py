"""An encoder × task × split seen layer by layer: requested by a page, computed in the background, cached by content.

    request.py    the request, and the key of its content
    own.py        your own texts and vectors instead of a task
    own_vectors.py  what a view of own vectors holds
    jobs.py       what is computed in the background: views, own sentences, UMAP
    measuring.py  what a view holds
    similarity.py  how alike two layers or two models are: debiased CKA, shared neighbours
    shrinkage.py  IsoScore*, with Σ_S from training tokens
    points.py     what each point of a cloud is
    outputs.py    I1, I2 and row lengths of its head or vocabulary
    results.py    what can be read of a finished view
    encoders.py   models by name, those of finished runs among them

Looking closer at one cloud of a view:

    maps.py         in two or three dimensions
    selection.py    the points inside a line
    neighbours.py   the points nearest to one
    clustering.py   which dimensions move together

Nothing here imports torch or umap before a worker starts to compute.
"""
