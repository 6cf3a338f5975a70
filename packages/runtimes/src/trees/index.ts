/**
 * Backend `fil`: models of decision trees from XGBoost, LightGBM, scikit-learn and treelite. Worker threads read files and evaluate large
 * batches; the serving thread evaluates small batches itself.
 */
export { readXgboostScorer } from "./xgboost-scorer.ts";
export { createFilBackend } from "./fil-backend.ts";
