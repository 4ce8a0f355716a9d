"""The screen: what is drawn from a View and a Diagnosis. With app.py, main.py and pages/ the only code that imports Streamlit or Altair."""
