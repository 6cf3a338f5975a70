/** An interpreter with what it needs: what one zygote is warm for. */
export interface PythonEnvironment {
  /** Names it in messages; equal keys are the same environment. */
  readonly key: string;
  /** The interpreter, and what comes before the script on its command line. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Where an environment lies that a model brought, or that packages were asked for in; null for the operator's own. */
  readonly directory: string | null;
  /** What its interpreter imports before it says that it is ready, whatever models import. */
  readonly imports: readonly string[];
  /** A sentence for users: how to add a package that a model lacks. */
  readonly packageHint: string;
}
