/**
 * Framework containers in script mode: archives with a script (`code/inference.py`, or what SAGEMAKER_PROGRAM names) whose functions are
 * called as SageMaker's inference toolkit calls them. Bodies pass to the script as they came; the toolkit's part is played in
 * `python/galatea_frameworks/toolkit`.
 */
export { scriptContainer, scriptOrElse } from "./script-container.ts";
