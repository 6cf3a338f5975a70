/** Whether the platform records metrics of all endpoints there: others' alarms and scaling policies go by them. */
export function isPlatformsNamespace(namespace: string): boolean {
  return /^(?:AWS\/|\/aws\/|Galatea\/)/i.test(namespace);
}
