"""The user interface, with Streamlit and Plotly; the engine is `isoviz`."""
