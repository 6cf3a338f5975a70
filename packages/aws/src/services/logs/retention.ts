import { AwsError } from "@galatea/base";

/** The retention periods in days that CloudWatch Logs accepts. */
const retentionDays: readonly number[] = [
  1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
];

export function checkRetentionDays(days: number): number {
  if (retentionDays.includes(days)) return days;
  throw new AwsError(
    "InvalidParameterException",
    `1 validation error detected: Value '${days}' at 'retentionInDays' failed to satisfy constraint: ` +
      `Member must satisfy enum value set: [${retentionDays.join(", ")}]`,
  );
}
