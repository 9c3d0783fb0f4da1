"""Everything that knows Streamlit or Plotly; the engine is `isoviz`."""
