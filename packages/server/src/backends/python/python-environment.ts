/** A Python interpreter with its modules. Each environment has one zygote. */
export interface PythonEnvironment {
  /** A name for messages. Two environments with the same key are identical. */
  readonly key: string;
  /** Path of the interpreter, and its arguments before the script. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Directory of an environment that a model ships, or that was created for packages; null for the operator's environment. */
  readonly directory: string | null;
  /** Modules that every zygote of this environment imports before it is ready. */
  readonly imports: readonly string[];
  /** A sentence for error messages: how to add a package that a model lacks. */
  readonly packageHint: string;
}
