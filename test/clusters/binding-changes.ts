import type { FleetClient } from '#libs/client';

/** The messages of the changes that Sluice has published because of new values, in order. */
export const bindingChanges = async (client: FleetClient): Promise<readonly string[]> =>
  [...(await client.list('changes')).values()]
    .filter(({ source }) => source === 'bindings')
    .sort((a, b) => a.change.localeCompare(b.change, 'en', { numeric: true }))
    .map(({ message }) => message);
