/**
 * Returns whether a CloudWatch namespace is reserved for metrics that the platform records itself. Callers may not write
 * to it, because alarms and scaling policies of other callers rely on its metrics.
 */
export function isPlatformsNamespace(namespace: string): boolean {
  return /^(?:AWS\/|\/aws\/|Galatea\/)/i.test(namespace);
}
