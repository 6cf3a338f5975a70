/**
 * Backend `fil`: models of decision trees from XGBoost, LightGBM, scikit-learn and treelite. Files are read, and large batches evaluated,
 * in threads; small batches are evaluated in the serving thread.
 */
export { readXgboostScorer } from "./xgboost-scorer.ts";
export { createFilBackend } from "./fil-backend.ts";
