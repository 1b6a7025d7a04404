import { isChangeId, isHash, isNodeName, labelProblem } from '#libs/contracts';
import { UsageError } from '../output/exit.js';

/** Refuses an invalid id of a change. */
export function changeIdOf(text: string): string {
  if (isChangeId(text)) return text;
  throw new UsageError(
    `${JSON.stringify(text)} is not a change ID: IDs look like c1 or c42; list them with sluice get changes`,
  );
}

/** Refuses an invalid name of a node. */
export function nodeNameOf(text: string): string {
  if (isNodeName(text)) return text;
  throw new UsageError(
    `${JSON.stringify(text)} is not a node name: node names are DNS names (a-z, 0-9, "-" and "."); list them with sluice get nodes`,
  );
}

/** Refuses a text that is neither a hash nor the start of one; `list` names the command that lists hashes. */
export function hashPrefixOf(text: string, what: string, list: string): string {
  if (isHash(text) || /^[0-9a-f]{7,64}$/.test(text)) return text;
  throw new UsageError(
    `${what}${JSON.stringify(text)} is not a hash: give all of it, or at least the first 7 hex digits; list hashes with ${list}`,
  );
}

/** Parses labels: `key=value` sets one, `key-` removes one, as with kubectl. */
export function labelChangesOf(texts: readonly string[]): {
  readonly set: Readonly<Record<string, string>>;
  readonly remove: readonly string[];
} {
  const changes = texts.map((text) => {
    const equals = text.indexOf('=');
    if (equals > 0) return { key: text.slice(0, equals), value: text.slice(equals + 1) };
    if (equals < 0 && text.length > 1 && text.endsWith('-')) return { key: text.slice(0, -1) };
    throw new UsageError(
      `${JSON.stringify(text)} is neither KEY=VALUE, which sets a label, nor KEY-, which removes it`,
    );
  });
  const keys = changes.map(({ key }) => key);
  const twice = keys.find((key, i) => keys.indexOf(key) !== i);
  if (twice !== undefined) throw new UsageError(`the label ${twice} is named twice: keep one of them`);
  for (const { key, value } of changes) {
    const wrong = value === undefined ? undefined : labelProblem(key, value);
    if (wrong !== undefined) throw new UsageError(wrong);
  }
  return {
    set: Object.fromEntries(changes.flatMap(({ key, value }) => (value === undefined ? [] : [[key, value]]))),
    remove: changes.flatMap(({ key, value }) => (value === undefined ? [key] : [])),
  };
}
