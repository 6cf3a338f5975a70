"""Scripts that serve models of XGBoost."""
