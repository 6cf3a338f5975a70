/**
 * Backend `fil`: models of decision trees from XGBoost, LightGBM, scikit-learn and treelite. Their files are read here, off the
 * serving thread, and become ONNX models, which the ONNX Runtime backend runs.
 */
export { checkTreeModel } from "./check-tree-model.ts";
export { createFilBackend, type FilBackendOptions } from "./fil-backend.ts";
