/** An interpreter with its environment; one zygote serves one environment. */
export interface PythonEnvironment {
  /** Name for messages; equal keys are the same environment. */
  readonly key: string;
  /** The interpreter, and its arguments before the script. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Directory of an environment that a model brought, or that was created for packages; null for the operator's own. */
  readonly directory: string | null;
  /** Modules that its interpreter always imports before it is ready. */
  readonly imports: readonly string[];
  /** A sentence for users: how to add a package that a model lacks. */
  readonly packageHint: string;
}
