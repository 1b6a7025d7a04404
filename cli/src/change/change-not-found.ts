/** Why nothing is known of a change. `unread`: the changes that no service has read yet. */
export function changeNotFound(id: string, unread: readonly string[]): Error {
  return new Error(
    unread.includes(id)
      ? `change ${id} was published, but no service has read it yet: check that the merger runs (sluice doctor), or wait with sluice status ${id} -w`
      : `change ${id} not found: list changes with sluice get changes`,
  );
}

const NAMED = 5;

/** `no service has read c7, c8 yet`: they wait until the merger runs. */
export const unreadText = (unread: readonly string[]): string =>
  `no service has read ${unread.slice(0, NAMED).join(', ')}${unread.length > NAMED ? ` and ${unread.length - NAMED} more changes` : ''} yet`;
