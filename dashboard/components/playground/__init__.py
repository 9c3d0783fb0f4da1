"""The playground: a cloud shaped by controls, measured in the browser. `source` works without Streamlit, `mounted` puts it on a page."""
