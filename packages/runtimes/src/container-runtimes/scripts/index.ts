/**
 * Framework containers in script mode. An archive has a script, `code/inference.py` or the file that SAGEMAKER_PROGRAM names, whose
 * functions are called as by SageMaker's inference toolkit. Request bodies reach the script unchanged.
 * `python/galatea_frameworks/toolkit` implements the toolkit.
 */
export { scriptContainer, scriptOrElse } from "./script-container.ts";
