import type { Item } from '../../core/index.js';

/** Key of what a unit was before Sluice, as `SystemdUnit` keeps it. */
export const unitKey = (unit: string): string => `unit:${unit}`;

/** Whether a unit shall not run after these items: a restart would start it. */
export function restsAfter(items: readonly Item[], unit: string): boolean {
  return items.some((item) => {
    if (item.do === 'apply')
      return (
        item.entry.kind === 'SystemdUnit' && item.entry.spec['name'] === unit && item.entry.spec['state'] === 'stopped'
      );
    return item.key === unitKey(unit) && (item.original.was as { readonly active?: unknown } | null)?.active === false;
  });
}
