"""Which row of the LLM-serving symptom table applies, since when, on which replicas, and how we know."""

__version__ = "0.1.0"
