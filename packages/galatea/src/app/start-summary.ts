import type { KeySource } from "@galatea/aws/owner-keys";
import { shellWord } from "./shell-words.ts";

export interface StartFacts {
  readonly url: string;
  readonly startMs: number;
  readonly dataDirectory: string;
  /** The source of the keys with which callers sign; null: requests are not authenticated. */
  readonly keys: KeySource | null;
  /** The command that starts this program. */
  readonly program: string;
  /** The kinds of isolation between tenants that this machine cannot apply. */
  readonly confinementGaps: readonly string[];
}

/** Returns the text that `galatea up` prints on stdout when it is ready. The first line contains the URL. */
export function startSummary({ url, startMs, dataDirectory, keys, program, confinementGaps }: StartFacts): string {
  const callers =
    keys === null
      ? "disabled: any process that reaches this address has full access (--open)"
      : `signed requests, keys from ${keys.from === "environment" ? "environment variables" : keys.path}`;
  const models =
    confinementGaps.length === 0
      ? "models of different tenants are isolated"
      : `models of different tenants are not isolated in: ${confinementGaps.join(", ")} (see the warning in the log)`;
  return (
    `Galatea is up at ${url} (${startMs.toFixed(0)} ms)\n` +
    `  data: ${dataDirectory}\n` +
    `  authentication: ${callers}\n` +
    `  confinement: ${models}\n` +
    `  next: eval "$(${program} env --data ${shellWord(dataDirectory)})" and call it with boto3 or the AWS CLI\n`
  );
}
