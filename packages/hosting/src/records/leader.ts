import type { Document, Documents } from "./documents.ts";

/** The kind of the one document that names the leader: the platform that has the records. */
export const leaderKind = "leader";
const key = "leader";

interface LeaderRecord {
  /** URL at which gateways reach the leader. */
  readonly url: string;
}

/** Records the URL of the platform that has the records, for gateways. */
export async function recordLeader(documents: Documents, url: string): Promise<void> {
  const present = await documents.get(leaderKind, key);
  if (present !== null && leaderOf([present])?.url === url) return;
  const body = JSON.stringify({ url } satisfies LeaderRecord);
  await documents.write([{ do: "put", kind: leaderKind, key, body, expects: present?.version ?? "absent" }]);
}

/** Returns the leader that documents of the kind `leaderKind` name; null if none does. */
export function leaderOf(documents: Iterable<Document>): LeaderRecord | null {
  for (const { body } of documents) return JSON.parse(body) as LeaderRecord;
  return null;
}
