/**
 * Framework containers in script mode: archives with a script (`code/inference.py`, or the one that SAGEMAKER_PROGRAM names) whose
 * functions are called as by SageMaker's inference toolkit. Bodies are passed to the script unchanged;
 * `python/galatea_frameworks/toolkit` implements the toolkit.
 */
export { scriptContainer, scriptOrElse } from "./script-container.ts";
