/**
 * Backend `fil`: models of decision trees from XGBoost, LightGBM, scikit-learn and treelite. Their files are read and their trees
 * walked here: reading and large batches in threads, small batches where the request is served.
 */
export { readXgboostScorer } from "./xgboost-scorer.ts";
export { createFilBackend } from "./fil-backend.ts";
