/**
 * Returns whether the platform records its own metrics in a namespace. Callers may not write there: alarms and scaling
 * policies of other endpoints read it.
 */
export function isPlatformsNamespace(namespace: string): boolean {
  return /^(?:AWS\/|\/aws\/|Galatea\/)/i.test(namespace);
}
