"""Scripts that serve models of scikit-learn."""
