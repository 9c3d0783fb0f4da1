# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["isoviz-embeddings[tables]", "marimo"]
# ///

import marimo

app = marimo.App(width="full")


@app.cell
def _():
    import marimo as mo

    import isoviz
    from isoviz import metrics, posthoc, vectors

    return isoviz, metrics, mo, posthoc, vectors


@app.cell
def _(mo):
    mo.md("""
    # Vectors on a page, in a notebook

    2,000 sentences on six topics, encoded by the small model that ships with IsoViz. Yours: `vectors.read("file.parquet")`, or any array.
    """)
    return


@app.cell
def _(vectors):
    sentences = vectors.load("example-demo-topics")
    return (sentences,)


@app.cell
def _(mo):
    strength = mo.ui.slider(0, 1, step=0.25, value=0.5, label="Whitening")
    mo.hstack([strength])
    return (strength,)


@app.cell
def _(metrics, mo, posthoc, sentences, strength):
    whitened = posthoc.zca(strength=strength.value, ridge=0.1).fit_transform(sentences.points)
    before, after = (metrics.isoscore(cloud) for cloud in (sentences.points, whitened))
    mo.md(f"IsoScore {before:.3f} → {after:.3f}. More isotropic; whether it helps, the neighbours below begin to say.")
    return (whitened,)


@app.cell
def _(isoviz, sentences, whitened):
    isoviz.show(whitened, labels=sentences.columns["label"], texts=sentences.columns["text"], name="whitened")
    return


if __name__ == "__main__":
    app.run()
