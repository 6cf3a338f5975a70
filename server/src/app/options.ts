/** What `galatea serve` was asked for, checked and complete. */
export interface ServeOptions {
  readonly id: string;
  readonly repositories: readonly string[];
  readonly control: "none" | "explicit";
  /** `["*"]` for everything. */
  readonly loadModels: readonly string[];
  readonly modelConfigName: string;
  readonly strictReadiness: boolean;
  readonly exitOnError: boolean;
  readonly exitTimeoutSecs: number;
  readonly autoComplete: boolean;
  readonly loadsMax: number;
  readonly http: { readonly address: string; readonly port: number } | null;
  readonly inputBytesMax: number;
  readonly metrics: {
    readonly address: string;
    readonly port: number;
    readonly intervalMs: number;
    readonly hostGauges: boolean;
  } | null;
  readonly container: {
    readonly listen: { readonly socketPath: string } | { readonly address: string; readonly port: number };
    readonly mlRoot: string;
    /** No repository was given: the SAGEMAKER_* environment says what to serve, as the `serve` entry point does. */
    readonly fromEnvironment: boolean;
  } | null;
  readonly log: {
    readonly verbose: boolean;
    readonly info: boolean;
    readonly warning: boolean;
    readonly error: boolean;
    readonly format: "default" | "ISO8601";
    readonly file: string;
  };
  readonly backendConfig: readonly { readonly backend: string; readonly key: string; readonly value: string }[];
  readonly memoryBudgetBytes: number | null;
  readonly queueLengthMax: number;
  readonly python: string | null;
  readonly dataDirectory: string | null;
}

export interface UpOptions {
  readonly host: string;
  readonly port: number;
  readonly dataDirectory: string | null;
}
